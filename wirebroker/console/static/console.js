// Times in the viewer's time zone, a bound of streamed lists, and the form of the messages page.
(() => {
  const pad = (number, digits = 2) => String(number).padStart(digits, "0");

  const localText = (moment, isExact) => {
    const day = `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())}`;
    const time = `${pad(moment.getHours())}:${pad(moment.getMinutes())}:${pad(moment.getSeconds())}`;
    if (isExact) return `${day} ${time}.${pad(moment.getMilliseconds(), 3)}`;
    const isToday = moment.toDateString() === new Date().toDateString();
    return isToday ? time : `${day} ${time}`;
  };

  const showLocalTimes = (root) => {
    for (const element of root.querySelectorAll("time[datetime]:not([data-local])")) {
      element.dataset.local = "";
      const moment = new Date(element.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      if (!element.title) element.title = element.dateTime;
      const text = localText(moment, "exact" in element.dataset);
      if (element.textContent !== text) element.textContent = text;
    }
  };

  const boundLists = () => {
    for (const list of document.querySelectorAll("[data-most]")) {
      const most = Number(list.dataset.most);
      while (list.children.length > most) list.lastElementChild.remove();
    }
  };

  const showFields = () => {
    const start = document.querySelector("form.search select[name=start]");
    if (!start) return;
    for (const field of document.querySelectorAll("[data-only-for]")) {
      field.hidden = field.dataset.onlyFor !== start.value;
    }
  };

  const refresh = () => {
    showLocalTimes(document);
    boundLists();
  };

  document.addEventListener("htmx:after:swap", refresh);
  document.addEventListener("change", showFields);
  document.addEventListener("DOMContentLoaded", refresh);
  refresh();
  showFields();
  document.querySelector(".sections [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
})();

// Times in the viewer's time zone, streamed lists and their end, and the form of the messages page.
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

  // At the end of a search or tail, remove the Stop button and show a failure.
  const endStream = (element, failure) => {
    if (element.id !== "stream") return;
    const progress = document.querySelector("#progress");
    if (element.contains(document.activeElement)) progress.focus();
    element.remove();
    if (!failure) return;
    const text = document.createElement("p");
    text.className = "bad";
    text.textContent = failure;
    if (progress.querySelector(".meter")) progress.append(text);
    else progress.replaceChildren(text);
  };

  const lost = "The connection ended. Reload the page to go on.";
  document.addEventListener("htmx:sse:close", (event) => {
    const { reason } = event.detail;
    if (reason !== "removed" && reason !== "cleanup") endStream(event.target, reason === "ended" && lost);
  });
  document.addEventListener("htmx:response:error", (event) => {
    const { ctx } = event.detail;
    if (event.target.id !== "stream") return;
    ctx.swap = "none"; // Otherwise the text would be among the records.
    const isText = ctx.response.headers.get("Content-Type")?.startsWith("text/plain");
    endStream(event.target, isText ? ctx.text : lost);
  });
  document.addEventListener("htmx:error", (event) => endStream(event.target, lost));

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

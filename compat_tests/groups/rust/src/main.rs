//! A group member on rust-rdkafka; what it is given and says: see ../../README.md.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::message::Message;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

const MOST_UNCOMMITTED: usize = 10;

/// Says what is assigned and revoked; commits what has been processed before partitions go.
struct Speaker {
    name: String,
    topic: String,
    done: Mutex<Vec<(i32, i64)>>,
}

impl Speaker {
    /// Several members write into one pipe: a line goes out by one call, so that lines never mix.
    fn say(&self, event: &str) {
        let line = format!("{{\"member\":\"{}\",{}}}\n", self.name, event);
        let mut output = std::io::stdout().lock();
        output.write_all(line.as_bytes()).expect("nobody listens");
        output.flush().expect("nobody listens");
    }

    fn say_offset(&self, event: &str, partition: i32, offset: i64) {
        self.say(&format!(
            "\"event\":\"{event}\",\"partition\":{partition},\"offset\":{offset}"
        ));
    }

    fn say_partitions(&self, event: &str, list: &TopicPartitionList) {
        let numbers: Vec<String> = list
            .elements()
            .iter()
            .map(|one| one.partition().to_string())
            .collect();
        self.say(&format!(
            "\"event\":\"{event}\",\"partitions\":[{}]",
            numbers.join(",")
        ));
    }

    fn say_error(&self, error: impl std::fmt::Display) {
        let text = error.to_string().replace('"', "'");
        self.say(&format!("\"event\":\"error\",\"error\":\"{text}\""));
    }

    /// A commit that is refused, because a rebalance has begun, is tried again while the partition
    /// is still ours.
    fn commit(&self, consumer: &BaseConsumer<Speaker>) {
        let done = std::mem::take(&mut *self.done.lock().unwrap());
        if done.is_empty() {
            return;
        }
        let mut list = TopicPartitionList::new();
        for (partition, next) in &done {
            if list.find_partition(&self.topic, *partition).is_none() {
                list.add_partition(&self.topic, *partition);
            }
            list.set_partition_offset(&self.topic, *partition, Offset::Offset(*next))
                .expect("the partition was added");
        }
        match consumer.commit(&list, CommitMode::Sync) {
            Ok(()) => done
                .iter()
                .for_each(|(partition, next)| self.say_offset("committed", *partition, *next)),
            Err(error) => {
                self.say_error(error);
                *self.done.lock().unwrap() = done;
            }
        }
    }

    fn drop_partitions(&self, list: &TopicPartitionList) {
        let mut done = self.done.lock().unwrap();
        done.retain(|(partition, _)| list.find_partition(&self.topic, *partition).is_none());
    }
}

impl ClientContext for Speaker {}

impl ConsumerContext for Speaker {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => self.say_partitions("assigned", list),
            Rebalance::Revoke(list) => {
                self.commit(consumer);
                self.drop_partitions(list);
                self.say_partitions("revoked", list);
            }
            Rebalance::Error(error) => self.say_error(error),
        }
    }
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [name, bootstrap, topic, group, assignors, instance_id, session_ms] = &given[..] else {
        panic!("arguments: name bootstrap topic group assignors instance-id session-ms");
    };
    let session: u32 = session_ms.parse().expect("session-ms is a number");
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("group.id", group)
        .set("partition.assignment.strategy", assignors)
        .set("session.timeout.ms", session_ms)
        .set("heartbeat.interval.ms", (session / 10).to_string())
        .set("max.poll.interval.ms", session.max(10_000).to_string())
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "100");
    if instance_id != "-" {
        config.set("group.instance.id", instance_id);
    }
    let speaker = Speaker {
        name: name.clone(),
        topic: topic.clone(),
        done: Mutex::new(Vec::new()),
    };
    let consumer: BaseConsumer<Speaker> = config
        .create_with_context(speaker)
        .expect("a valid configuration");
    consumer.subscribe(&[topic]).expect("a valid topic");
    run(&consumer);
    let last = Speaker {
        name: name.clone(),
        topic: topic.clone(),
        done: Mutex::new(Vec::new()),
    };
    drop(consumer); // leaves the group
    last.say("\"event\":\"left\"");
}

fn run(consumer: &BaseConsumer<Speaker>) {
    let is_leaving = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_leaving);
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        told.store(true, Ordering::Relaxed);
    });
    let speaker = consumer.context();
    while !is_leaving.load(Ordering::Relaxed) {
        match consumer.poll(Duration::from_millis(50)) {
            None => speaker.commit(consumer),
            Some(Err(error)) => speaker.say_error(error),
            Some(Ok(message)) => {
                speaker.say_offset("record", message.partition(), message.offset());
                let uncommitted = {
                    let mut done = speaker.done.lock().unwrap();
                    done.push((message.partition(), message.offset() + 1));
                    done.len()
                };
                if uncommitted >= MOST_UNCOMMITTED {
                    speaker.commit(consumer);
                }
            }
        }
    }
    speaker.commit(consumer);
}

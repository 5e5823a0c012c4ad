//! Writes a record and reads it back by rust-rdkafka, with the settings that it is given.
//!
//! Arguments: a topic, seconds, then librdkafka's settings as `name=value`. It prints `read` and
//! the record's offset, or `refused` and librdkafka's reason, when one is told or the time is over.
//! With OAUTHBEARER `sasl.oauthbearer.config` is the token.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaErrorCode;

const POLL: Duration = Duration::from_millis(50);
// What librdkafka is told of a token; what the broker is told stands in the token.
const TOKEN_LIVES: Duration = Duration::from_secs(300);

/// Keeps what the client is told first that ends it: a refusal, or the record's place.
#[derive(Clone, Default)]
struct Told {
    place: Arc<Mutex<Option<(i32, i64)>>>,
    refusal: Arc<Mutex<Option<String>>>,
}

impl Told {
    fn refuse(&self, why: String) {
        self.refusal.lock().unwrap().get_or_insert(why);
    }
}

impl ClientContext for Told {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code();
        if matches!(
            code,
            Some(RDKafkaErrorCode::Authentication) | Some(RDKafkaErrorCode::SSL)
        ) {
            self.refuse(format!("{error}: {reason}"));
        }
    }

    fn generate_oauth_token(&self, token: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        let end = SystemTime::now().duration_since(UNIX_EPOCH)? + TOKEN_LIVES;
        Ok(OAuthToken {
            token: token.ok_or("no token")?.to_owned(),
            principal_name: "alice".to_owned(),
            lifetime_ms: end.as_millis().try_into()?,
        })
    }
}

impl ConsumerContext for Told {}

impl ProducerContext for Told {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        match result {
            Ok(record) => {
                *self.place.lock().unwrap() = Some((record.partition(), record.offset()));
            }
            Err((error, _)) => self.refuse(error.to_string()),
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let topic = arguments.next().expect("a topic");
    let seconds: u64 = arguments.next().expect("seconds").parse().expect("seconds");
    let mut config = ClientConfig::new();
    for each in arguments {
        let (name, value) = each.split_once('=').expect("name=value");
        config.set(name, value);
    }
    match exchange(&config, &topic, Instant::now() + Duration::from_secs(seconds)) {
        Ok(offset) => println!("read {offset}"),
        Err(why) => println!("refused {why}"),
    }
}

fn exchange(config: &ClientConfig, topic: &str, end: Instant) -> Result<i64, String> {
    let told = Told::default();
    let producer: BaseProducer<Told> = config
        .create_with_context(told.clone())
        .map_err(|error| error.to_string())?;
    producer
        .send(BaseRecord::<(), [u8]>::to(topic).payload(b"by rust".as_slice()))
        .map_err(|(error, _)| error.to_string())?;
    let (partition, offset) = loop {
        producer.poll(POLL);
        if let Some(place) = *told.place.lock().unwrap() {
            break place;
        }
        let refusal = told.refusal.lock().unwrap().clone();
        if refusal.is_some() || Instant::now() > end {
            producer.purge(rdkafka::producer::PurgeConfig::default().queue().inflight());
            return Err(refusal.unwrap_or_else(|| "nothing was told".to_owned()));
        }
    };
    read_at(config, topic, partition, offset, end)
}

fn read_at(
    config: &ClientConfig,
    topic: &str,
    partition: i32,
    offset: i64,
    end: Instant,
) -> Result<i64, String> {
    let consumer: BaseConsumer<Told> = config
        .clone()
        .set("group.id", topic)
        .set("enable.auto.commit", "false")
        .create_with_context(Told::default())
        .map_err(|error| error.to_string())?;
    let mut place = TopicPartitionList::new();
    place
        .add_partition_offset(topic, partition, Offset::Offset(offset))
        .map_err(|error| error.to_string())?;
    consumer.assign(&place).map_err(|error| error.to_string())?;
    while Instant::now() < end {
        match consumer.poll(POLL) {
            Some(Ok(record)) if record.payload() == Some(b"by rust".as_slice()) => {
                return Ok(record.offset());
            }
            Some(Ok(record)) => return Err(format!("another record: {:?}", record.payload())),
            Some(Err(error)) => return Err(error.to_string()),
            None => {}
        }
    }
    Err("the record did not come".to_owned())
}

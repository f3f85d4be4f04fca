//! The delay until a change of a topic is in use, and the requests of processes for it.
//!
//! This test is separate from the contracts of reading topics. It uses processes of Lambda, the
//! permissions of the template, and the command line that makes the change. Figures:
//! `docs/reference/figures/emulated-aws.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastmile_tests::emulated::ReservedPort;
use lastmile_tests::writers::succeeded;
use tokio::runtime::Runtime;

use crate::campaign::gateway::{Gateway, TopicRead};
use crate::stack::{ACCOUNT, Stack};
use crate::subscriber::{Manner, Scripts, Subscriber};
use crate::{event, now};

/// All processes use a change within this time.
const IN_USE_WITHIN: Duration = Duration::from_secs(35);
/// The object of the topic, which each process reads once after the change.
const TOPIC: &str = "shop/orders.json";

/// The time before the change, in which processes look for changes.
const BEFORE: Duration = Duration::from_secs(40);
const BETWEEN_EVENTS: Duration = Duration::from_millis(100);
/// The time in which all published events arrive.
const ARRIVAL: Duration = Duration::from_secs(5);

const PARAMETERS: [&str; 2] = ["Concurrency=10", "DispatchTimeout=60"];

#[test]
#[ignore = "takes minutes; run by hand"]
fn a_change_of_one_subscription_is_in_use_within_35_s_for_one_read_of_a_process() {
    Runtime::new().expect("a runtime starts").block_on(async {
        let scripts: Scripts = ["/first", "/second"].map(|path| (path, [200].as_slice())).into();
        let subscriber = Subscriber::start(scripts).await;
        // Each response takes so long that one process cannot deliver all events.
        subscriber.differ("/first", Manner::Takes(Duration::from_millis(500)));
        let port = ReservedPort::take();
        let gateway = Gateway::start(port.number, 7).await;
        gateway.calm();
        let stack = Stack::deploy_at(port, gateway.port, &PARAMETERS, String::new()).await;
        let stack = Arc::new(stack);
        let place = stack.place(stack.output("ConfigBucketName"), &ACCOUNT);
        let apply = |text: &str| drop(succeeded(place.apply("test", text)));
        let named =
            |name: &str| subscription(&format!("http://{}/{name}", subscriber.address), name);
        let others = (0..200).map(|at| named("first").replace("orders", &format!("other-{at}")));
        let first = others.chain([named("first")]).collect::<Vec<_>>().join("---\n");
        apply(&first);

        let publishing = Publishing::start(&stack);
        tokio::time::sleep(BEFORE).await;
        let begun = now();
        apply(&named("second"));
        let put = now();
        tokio::time::sleep(IN_USE_WITHIN).await;
        let in_use_from = publishing.next();
        let read = gateway.topic_reads(begun);
        tokio::time::sleep(ARRIVAL).await;
        let published = publishing.stop().await;
        tokio::time::sleep(ARRIVAL).await;

        let arrived = subscriber.arrivals("/second");
        let first_after = arrived.first().map(|arrival| arrival.at - put);
        let after: Vec<String> = arrived.iter().map(crate::event_id).collect();
        println!("{}", table(published, first_after, &read));
        let missing: Vec<usize> = (in_use_from..published)
            .filter(|number| !after.contains(&format!("event-{number}")))
            .collect();
        assert!(in_use_from + 10 < published && missing.is_empty(), "{missing:?}");
        assert_eq!(subscriber.arrivals("/first").len(), published, "nothing is lost");
        let by_process = by_process(&read);
        assert!(by_process.len() >= 2, "{by_process:?}");
        for (process, reads) in by_process {
            let of_topic = reads.iter().filter(|read| read.key == TOPIC).count();
            assert!(of_topic <= 1, "{process}: {reads:?}");
        }
    });
}

/// A task that publishes events continuously.
struct Publishing {
    is_going: Arc<AtomicBool>,
    published: tokio::sync::watch::Receiver<usize>,
    task: tokio::task::JoinHandle<()>,
}

impl Publishing {
    fn start(stack: &Arc<Stack>) -> Self {
        let is_going = Arc::new(AtomicBool::new(true));
        let (sender, published) = tokio::sync::watch::channel(0);
        let (stack, going) = (Arc::clone(stack), Arc::clone(&is_going));
        let task = tokio::spawn(async move {
            while going.load(Ordering::Relaxed) {
                let number = *sender.borrow();
                stack.publish("shop/orders", &event(&format!("event-{number}"))).await;
                sender.send_replace(number + 1);
                tokio::time::sleep(BETWEEN_EVENTS).await;
            }
        });
        Self { is_going, published, task }
    }

    /// Returns the number of the first event that is certainly sent later.
    fn next(&self) -> usize {
        *self.published.borrow() + 1
    }

    /// Stops publishing and returns the number of published events.
    async fn stop(self) -> usize {
        self.is_going.store(false, Ordering::Relaxed);
        self.task.await.expect("it ends");
        *self.published.borrow()
    }
}

fn subscription(url: &str, name: &str) -> String {
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
         metadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: \"{url}\"}}}}\n"
    )
}

fn by_process(reads: &[TopicRead]) -> BTreeMap<&str, Vec<&TopicRead>> {
    let mut all: BTreeMap<&str, Vec<&TopicRead>> = BTreeMap::new();
    for read in reads {
        all.entry(read.process.as_deref().unwrap_or("unknown")).or_default().push(read);
    }
    all
}

fn table(published: usize, first_after: Option<Duration>, reads: &[TopicRead]) -> String {
    let mut table = String::from("\n| | |\n|---|---|\n");
    let mut row = |name: &str, value: String| {
        writeln!(table, "| {name} | {value} |").expect("a text can be written to");
    };
    row("events published", published.to_string());
    let after = first_after
        .map_or_else(|| "never".to_owned(), |duration| format!("{:.1}", duration.as_secs_f64()));
    row("seconds from the change to the first delivery", after);
    for (process, reads) in by_process(reads) {
        let name = |read: &&TopicRead| format!("{} {}", read.key, read.status);
        row(&format!("process {process}"), reads.iter().map(name).collect::<Vec<_>>().join(", "));
    }
    table
}

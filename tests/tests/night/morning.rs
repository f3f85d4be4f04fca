//! The morning: an operator replays and dismisses causes, on the stack of `lastmile dev`.
//!
//! All destinations are one server now. It accepts, but for those that a test breaks again.

use std::time::Duration;

use aws_sdk_sqs::types::MessageAttributeValue;
use lastmile_tests::scripted::{Scripted, ScriptedRequest, Step, answer};
use lastmile_tests::topics;
use local::stack::{Stack, StackConfig, TargetSettings};

use crate::container::{NightContainer, text};
use crate::destinations::{not_found, subscriptions};
use crate::lifetime::{EVENTS, INVOICES, event};

/// The limit of a replay; no test waits that long unless it fails.
const WAIT: &str = "PT1M";

/// The night's container, and a running stack that has it as its default container.
struct Morning {
    night: NightContainer,
    stack: Stack,
    _server: Scripted,
}

impl Morning {
    /// All destinations accept, but for one of this name.
    async fn start(broken: &'static str, step: Step) -> Self {
        let night = NightContainer::new();
        let react = move |request: &ScriptedRequest| {
            let path = request.head.split(' ').nth(1).unwrap_or_default();
            let is_broken = path.strip_prefix('/') == Some(broken);
            vec![if is_broken { step.clone() } else { answer("204 No Content", &[], b"") }]
        };
        let server = Scripted::start(react).await.expect("a free port");
        let file = subscriptions(|name| (format!("{}/{name}", server.endpoint()), ""));
        let folder = night.data().join("subscriptions");
        std::fs::create_dir(&folder).expect("a folder can be made");
        topics::apply_in(&folder, &file).await;
        let config = StackConfig {
            aws_port: 0,
            data: night.data().to_owned(),
            subscriptions: folder,
            allow_private: "127.0.0.1".to_owned(),
            targets: TargetSettings::default(),
            default_topic: None,
        };
        let stack = Stack::start(&config).await.expect("the stack starts");
        Self { night, stack, _server: server }
    }

    /// Acts on the container while the stack runs.
    fn act<T>(&self, act: impl FnOnce(&NightContainer) -> T) -> T {
        tokio::task::block_in_place(|| act(&self.night))
    }

    /// Replays the cause with this title, and waits for the ends.
    fn replay(&self, title: &str, name: &str) -> String {
        let queue = self.stack.aws().queue_url("retry");
        self.act(|night| {
            let id = night.cause_id(title);
            let options = ["--cause", &id, "--queue-url", &queue, "--name", name, "--wait", WAIT];
            let done = night.run(&[&["replay", "--yes"][..], &options].concat());
            text(&done.stdout)
        })
    }

    /// Publishes an event.
    async fn publish(&self, topic: &str, body: String) {
        let queue = self.stack.aws().queue_url("events");
        let named = MessageAttributeValue::builder().data_type("String").string_value(topic);
        let send = self.stack.sqs().send_message().queue_url(queue).message_body(body);
        let send = send.message_attributes("topic", named.build().expect("typed"));
        send.send().await.expect("the queue accepts it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cause_that_was_replayed_and_delivered_is_gone_unless_every_state_is_wanted() {
    let morning = Morning::start("none", not_found()).await;
    let title = "connection refused";
    let before = morning.act(|night| night.total(&[]));
    let said = morning.replay(title, "repaired");
    assert!(said.ends_with(&format!("{INVOICES} delivered\n")), "{said}");
    morning.act(|night| {
        let id = night.cause_id(title);
        assert_eq!(night.count(title, &[]), 0);
        assert_eq!(night.count(title, &["--state", "all"]), INVOICES);
        assert!(!night.text(&["why"]).contains(title));
        assert_eq!(night.listed(&["--cause", &id]).len(), 0);
        let all = night.listed(&["--cause", &id, "--state", "all"]).len() as u64;
        assert_eq!(all, INVOICES);
        assert_eq!(night.total(&[]), before - INVOICES);
        assert_eq!(night.total(&["--state", "all"]), before);
    });
    morning.stack.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_died_again_counts_once_under_its_newest_cause() {
    let refusal = answer("400 Bad Request", &[], b"the index has another schema");
    let morning = Morning::start("index", refusal).await;
    let (old, new) = ("503 overloaded", "400 the index has another schema");
    let before = morning.act(|night| night.total(&[]));
    let said = morning.replay(old, "too-early");
    assert!(said.ends_with(&format!("{EVENTS} dead-again\n")), "{said}");
    morning.act(|night| {
        assert_eq!([old, new].map(|title| night.count(title, &[])), [0, EVENTS]);
        assert_eq!(night.total(&[]), before);
        assert_eq!(night.listed(&[]).len() as u64, before);
        let all = &["--state", "all"];
        assert_eq!([old, new].map(|title| night.count(title, all)), [EVENTS; 2]);
        assert_eq!(night.total(all), before + EVENTS);
    });
    morning.stack.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dismissed_cause_opens_again_with_the_count_of_what_came_later() {
    let morning = Morning::start("ledger", not_found()).await;
    let title = "404 no such account book";
    morning.act(|night| {
        let id = night.cause_id(title);
        let said = night.text(&["dismiss", "--cause", &id, "--note", "the book was closed"]);
        assert_eq!(said, format!("{} dead letters dismissed\n", 2 * EVENTS));
        assert_eq!(night.count(title, &[]), 0);
        assert_eq!(night.count(title, &["--state", "dismissed"]), 2 * EVENTS);
    });
    morning.publish("shop/payments", event("payment.made", "later", "")).await;
    until(|| morning.act(|night| night.count(title, &[])) == 1).await;
    let all = morning.act(|night| night.count(title, &["--state", "all"]));
    assert_eq!(all, 2 * EVENTS + 1);
    morning.stack.stop().await.expect("it stops");
}

/// Waits for something that the running stack is about to do.
async fn until(is_done: impl Fn() -> bool) {
    let waiting = async {
        while !is_done() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("in time");
}

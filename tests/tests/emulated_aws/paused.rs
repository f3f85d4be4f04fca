//! A pause as its operator sees it: what is published meanwhile is set aside, and the printed command delivers all of it,
//! whichever of three ways ends the pause.
//!
//! Separate from the simulation of the same name, whose time is virtual: here real processes use the pause for a while
//! after its end, and replays go to them too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lastmile_tests::built::binary;
use lastmile_tests::snippets;
use serde_json::Value;

use super::stack::Stack;
use super::subscriber::{Scripts, Subscriber};
use super::{ARRIVAL_LIMIT, Deployment, event, event_id, now, on_deployment};

/// Each topic has one subscription, whose pause ends as the topic's name says.
const BY_APPLY: &str = "resumed-by-apply";
const BY_BOTO3: &str = "resumed-by-boto3";
const BY_ROLLBACK: &str = "resumed-by-rollback";
const TOPICS: [&str; 3] = [BY_APPLY, BY_BOTO3, BY_ROLLBACK];
const PATHS: [&str; 3] = ["/resumed-by-apply", "/resumed-by-boto3", "/resumed-by-rollback"];

/// Published to each topic during the pause.
const SET_ASIDE: usize = 10;
const BETWEEN_EVENTS: Duration = Duration::from_millis(250);

/// The quiet time of the printed command, and one that still is longer than processes use the pause after its end.
const QUIET: &str = "--until-quiet PT12M";
const SHORTER: &str = "--until-quiet PT40S";

/// A role that the stack's `OperatorArns` names: nobody else may send to its internal queues.
const OPERATOR: &str = "operators-of-pauses";
const EVERYTHING: &str = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}"#;

/// Appended to the manual's example.
const RESUME: &str = r#"
def resume(topic):
    del topic["subscriptions"]["all"]["spec"]["paused"]

change_topic(resume)
"#;

/// Three paused subscriptions and their subscriber.
struct Paused {
    stack: &'static Stack,
    operator: [(&'static str, String); 3],
    subscriber: Subscriber,
    files: tempfile::TempDir,
    /// Events published to each topic.
    published: usize,
}

impl Paused {
    /// The pause is a version of its own, so a rollback can end it.
    async fn new(stack: &'static Stack) -> Self {
        let scripts: Scripts = PATHS.map(|path| (path, [200].as_slice())).into();
        let subscriber = Subscriber::start(scripts).await;
        let files = tempfile::tempdir().expect("a folder");
        let operator = stack.session(OPERATOR, EVERYTHING);
        let paused = Self { stack, operator, subscriber, files, published: 0 };
        for is_paused in [false, true] {
            let _ = paused.apply(&TOPICS, is_paused);
        }
        paused
    }

    /// The program, found as by a person who types its name.
    fn shell(&self, line: &str) -> Command {
        let folder = binary("lastmile").with_file_name("");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> =
            [folder].into_iter().chain(std::env::split_paths(&path)).collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.files.path()).env("LASTMILE_CACHE", "off");
        shell.env("PATH", std::env::join_paths(folders).expect("folders without a colon"));
        shell.envs(self.stack.variables()).envs(self.operator.clone()).stdin(Stdio::null());
        shell
    }

    /// Runs a command; returns its output and its exit code.
    fn run(&self, line: &str) -> (String, Option<i32>) {
        let output = self.shell(line).output().expect("a shell starts");
        let printed = [output.stdout, output.stderr].concat();
        (String::from_utf8(printed).expect("text"), output.status.code())
    }

    /// Runs a command that has to succeed; returns its output.
    fn succeeded(&self, line: &str) -> String {
        let (printed, code) = self.run(line);
        assert_eq!(code, Some(0), "{line}: {printed}");
        printed
    }

    /// Starts a command that runs beside the test.
    fn start(&self, line: &str) -> Child {
        let mut shell = self.shell(line);
        shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell starts")
    }

    fn apply(&self, topics: &[&str], is_paused: bool) -> String {
        let address = self.subscriber.address;
        let document = |topic: &&str| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\n\
                 metadata: {{namespace: shop, topic: {topic}, name: all}}\n\
                 spec: {{destination: {{url: 'http://{address}/{topic}'}}, paused: {is_paused}}}\n"
            )
        };
        let file = topics.iter().map(document).collect::<Vec<_>>().join("---\n");
        std::fs::write(self.files.path().join("paused.yaml"), file).expect("a file");
        self.succeeded("lastmile apply -f paused.yaml --stack lastmile --owner pauses --yes")
    }

    /// Ends a pause by the manual's conditional write, as a program without `lastmile` does; returns what doctor prints then.
    fn resume_by_boto3(&self, topic: &str) -> String {
        let mut example = snippets::under("reference/storage.md", "Several writers, in Python");
        let (change_topic, _) =
            example.text.split_once("def add_billing").expect("the change is a function");
        let place = change_topic
            .replace("CONFIG_BUCKET", self.stack.output("ConfigBucketName"))
            .replace("shop/orders.json", &format!("shop/{topic}.json"));
        assert!(place.contains("IfMatch") && place.contains(topic), "{place}");
        example.text = place + RESUME;
        assert!(example.run(&[("AWS_ENDPOINT_URL", &self.stack.endpoint)]), "Python is there");
        self.run("lastmile doctor --stack lastmile").0
    }

    /// Publishes one event to each topic.
    async fn publish(&mut self) {
        for topic in TOPICS {
            let id = id(topic, self.published);
            self.stack.publish(&format!("shop/{topic}"), &event(&id)).await;
        }
        self.published += 1;
    }

    /// The ids of the events that a subscriber has received.
    fn arrived(&self, topic: &str) -> BTreeSet<String> {
        self.subscriber.arrivals(&format!("/{topic}")).iter().map(event_id).collect()
    }

    fn ids(&self, topic: &str) -> BTreeSet<String> {
        (0..self.published).map(|number| id(topic, number)).collect()
    }

    /// The dead letters of a topic whose replay has not ended, or that were not replayed.
    fn not_ended(&self, topic: &str) -> Vec<Value> {
        let (printed, _) = self.run(&format!(
            "lastmile deadletters list --stack lastmile --subscription shop/{topic}/all --state open \
             --state replaying --limit 0 --output json 2>/dev/null"
        ));
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    /// Ends the pauses while events are published, and returns the commands that this prints.
    async fn end(&mut self) -> Vec<String> {
        self.publish().await;
        let by_apply = self.apply(&[BY_APPLY], false);
        // The newest event may be stored by now.
        let is_counted = [SET_ASIDE, SET_ASIDE + 1].into_iter().any(|count| {
            by_apply
                .contains(&format!("all has at most {count} dead letters with the reason Paused"))
        });
        assert!(is_counted, "{by_apply}");
        self.publish().await;
        let by_boto3 = self.resume_by_boto3(BY_BOTO3);
        self.publish().await;
        let rollback = format!("lastmile rollback shop/{BY_ROLLBACK} --stack lastmile --yes");
        let by_rollback = self.succeeded(&rollback);
        vec![
            shortened(&by_apply, BY_APPLY),
            shortened(&by_boto3, BY_BOTO3),
            shortened(&by_rollback, BY_ROLLBACK),
        ]
    }
}

fn id(topic: &str, number: usize) -> String {
    format!("{topic}-{number}")
}

/// The printed command that replays this subscription, with a shorter quiet time, confirmed, and with a name of its own: the
/// default one is the time, which may be that of another.
fn shortened(printed: &str, topic: &str) -> String {
    let command = format!(
        "lastmile deadletters replay --stack lastmile --subscription shop/{topic}/all --reason Paused {QUIET}"
    );
    assert!(printed.contains(&command), "{command}\nis not in {printed}");
    format!("{} --yes --name {topic}", command.replace(QUIET, SHORTER))
}

/// Fails unless each of these events has one dead letter, and these say that the subscription is paused.
fn assert_set_aside(letters: &[(String, Value)], expected: &BTreeSet<String>) {
    let mut ids: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (key, letter) in letters {
        let about = &letter["deadletterProperties"];
        assert_eq!(about["deadletterreasoncode"], "Paused", "{key}: {letter:#}");
        let event = letter["event"]["id"].as_str().expect("an event has an id").to_owned();
        ids.entry(event).or_default().insert(about["deadletterid"].as_str().expect("an id"));
    }
    assert!(ids.values().all(|ids| ids.len() == 1), "{ids:#?}");
    assert_eq!(&ids.into_keys().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn what_a_pause_set_aside_is_delivered_by_the_printed_command_whatever_ends_the_pause() {
    on_deployment(|deployment: &Deployment| async {
        let mut paused = Paused::new(&deployment.stack).await;
        for _ in 0..SET_ASIDE {
            paused.publish().await;
        }
        for topic in TOPICS {
            let letters = deployment.dead_letters(&format!("shop/{topic}/all/"), SET_ASIDE).await;
            assert_set_aside(&letters, &paused.ids(topic));
            assert_eq!(paused.arrived(topic), BTreeSet::new(), "a pause sends no request");
        }
        let commands = paused.end().await;
        let replays: Vec<_> = commands.iter().map(|line| paused.start(line)).collect();
        let deadline = now() + ARRIVAL_LIMIT;
        while TOPICS.iter().any(|topic| paused.arrived(topic).is_empty()) {
            assert!(now() < deadline, "nothing arrives within {ARRIVAL_LIMIT:?}");
            paused.publish().await;
            tokio::time::sleep(BETWEEN_EVENTS).await;
        }
        for (replay, command) in replays.into_iter().zip(commands) {
            let done = replay.wait_with_output().expect("a replay ends");
            let printed = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(0), "{command}: {printed}");
            assert!(printed.contains("no dead letter arrived for 40 s"), "{command}: {printed}");
        }
        for topic in TOPICS {
            assert_eq!(paused.arrived(topic), paused.ids(topic));
            assert_eq!(paused.not_ended(topic), [Value::Null; 0]);
        }
    });
}

//! Dead letters for tests of the command line. They are written by hand and represent blobs that a
//! reader may find, not those that this system writes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A dead letter.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) number: u32,
    pub(crate) subscription: &'static str,
    /// Day and hour in November 2026.
    pub(crate) hour: (u32, u32),
    pub(crate) kind: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) status: Option<u16>,
    pub(crate) response: &'static str,
}

/// Five dead letters of two subscriptions.
pub(crate) const LETTERS: [Sample; 5] = [
    sample(1, (19, 23), "overloaded\nplease wait"),
    sample(2, (20, 9), "overloaded"),
    Sample {
        kind: "order.paid",
        reason: "UndeliverableDueToHttpNotFound",
        outcome: "NotFound",
        status: Some(404),
        ..sample(3, (20, 9), "no such order\u{1b}[2J")
    },
    sample(4, (20, 10), "overloaded"),
    Sample { subscription: "mail", outcome: "TimedOut", status: None, ..sample(5, (20, 11), "") },
];

/// The second sample again, in another blob.
pub(crate) const DUPLICATE: Sample = Sample { hour: (20, 10), ..LETTERS[1] };

/// A dead letter of shop/orders/billing with the status 503.
pub(crate) const fn sample(number: u32, hour: (u32, u32), response: &'static str) -> Sample {
    Sample {
        number,
        subscription: "billing",
        hour,
        kind: "order.created",
        reason: "MaxDeliveryAttemptsExceeded",
        outcome: "Busy",
        status: Some(503),
        response,
    }
}

impl Sample {
    pub(crate) fn id(self) -> String {
        format!("00000000-0000-0000-0000-{:012}", self.number)
    }

    pub(crate) fn key(self) -> String {
        let (day, hour) = self.hour;
        format!("shop/orders/{}/2026/11/{day}/{hour}/{}.json", self.subscription, self.id())
    }

    /// The key and the text of the blob.
    pub(crate) fn blob(self) -> (String, String) {
        // Two blobs of one dead letter have the same time of decision.
        let ended = LETTERS
            .iter()
            .find(|letter| letter.number == self.number)
            .map_or(self.hour, |letter| letter.hour);
        let at =
            |minute: u32| format!("2026-11-{:02}T{:02}:{minute:02}:07.0000000Z", ended.0, ended.1);
        let mut properties = json!({
            "deadletterreason": "Maximum delivery attempts was exceeded.",
            "deliveryattempts": 2,
            "deliveryresult": self.outcome,
            "publishutc": at(1),
            "deliveryattemptutc": at(3),
            "deadletterid": self.id(),
            "deadletterreasoncode": self.reason,
            "subscription": format!("shop/orders/{}", self.subscription),
            "destination": format!("https://{}.example.com/events", self.subscription),
            "history": [
                {"at": at(1), "outcome": "SocketError", "durationms": 12},
                {"at": at(3), "outcome": self.outcome, "durationms": 34},
            ],
        });
        if let Some(status) = self.status {
            properties["lasthttpstatuscode"] = status.into();
            properties["history"][1]["status"] = status.into();
            properties["lastresponse"] = self.response.into();
        }
        let (number, kind) = (self.number, self.kind);
        let event = format!(
            r#"{{"specversion":"1.0","id":"order-{number}","source":"https://shop.example.com/checkout","type":"{kind}","data":{{"n":{number}}}}}"#
        );
        (self.key(), format!(r#"{{"event":{event},"deadletterProperties":{properties}}}"#))
    }
}

/// Writes blobs below a folder.
pub(crate) fn write(folder: &Path, blobs: &[(String, String)]) {
    for (key, content) in blobs {
        let path = folder.join(key);
        std::fs::create_dir_all(path.parent().expect("a key has folders"))
            .expect("a folder can be made");
        std::fs::write(path, content).expect("a file can be written");
    }
}

/// A container, and the program that reads it.
pub(crate) struct TestContainer {
    folder: tempfile::TempDir,
    container: String,
    endpoint: Option<String>,
}

impl TestContainer {
    /// A container in the folder `letters`.
    pub(crate) fn folder() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        std::fs::create_dir(folder.path().join("letters")).expect("a folder can be made");
        Self { folder, container: "letters".to_owned(), endpoint: None }
    }

    /// A container in a bucket of a local AWS.
    pub(crate) fn bucket(endpoint: &str, container: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        Self { folder, container: container.to_owned(), endpoint: Some(endpoint.to_owned()) }
    }

    /// Returns the folder of the blobs.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("letters")
    }

    /// The folder for caches.
    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub(crate) fn write(&self, blobs: &[(String, String)]) {
        write(&self.path(), blobs);
    }

    /// Returns the command of the program.
    pub(crate) fn lastmile(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("ALLOW_PRIVATE_DESTINATIONS")
            .env_remove("LASTMILE_CACHE")
            .env("XDG_CACHE_HOME", self.cache());
        if let Some(endpoint) = &self.endpoint {
            let credentials = [("AWS_ACCESS_KEY_ID", "local"), ("AWS_SECRET_ACCESS_KEY", "local")];
            command
                .env("AWS_ENDPOINT_URL", endpoint)
                .env("AWS_REGION", "us-east-1")
                .envs(credentials);
        }
        command
    }

    /// Returns a command of `lastmile deadletters` on this container, unless the arguments name
    /// another.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.at_container("deadletters", arguments)
    }

    /// Returns the command of the console of this container.
    pub(crate) fn console(&self, arguments: &[&str]) -> Command {
        self.at_container("console", arguments)
    }

    fn at_container(&self, command: &str, arguments: &[&str]) -> Command {
        let mut all = [&[command], arguments].concat();
        if !arguments.contains(&"--container") {
            all.extend(["--container", &self.container]);
        }
        self.lastmile(&all)
    }

    /// Runs a command of `lastmile deadletters` on this container to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program runs")
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Parses the lines of NDJSON.
pub(crate) fn lines(output: &Output) -> Vec<Value> {
    let line =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text(&output.stdout).lines().map(line).collect()
}

/// Returns the number of storage requests that a command reports.
pub(crate) fn requests(output: &Output) -> u64 {
    let said = text(&output.stderr);
    let before = said.split(" storage request").next().unwrap_or_default();
    let number = before.rsplit(' ').next().unwrap_or_default();
    number.replace(',', "").parse().unwrap_or_else(|_| panic!("no number of requests in {said}"))
}

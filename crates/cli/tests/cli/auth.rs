//! `auth` of a destination, delivered by `dev` to a receiver that refuses all other requests. No
//! secret of it is printed or stored.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::console_live_server::{Dev as PageOf, event_page, subscription};
use crate::libraries;
use crate::programs::{Running, deciding_receiver, exchange, lastmile, printed, run, word};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"order.created"}"#;
const WAIT: Duration = Duration::from_secs(60);
/// A field for destinations whose requests are counted. On a busy machine a response may take
/// longer than the default of `slowAfter`, two seconds. The request would then be abandoned and
/// repeated in the slow lane.
pub(crate) const NEVER_SLOW: &str = ", slowAfter: PT10M";
/// The kinds: path, `auth` of the file, and the header that the receiver requires.
const KINDS: [(&str, &str, &str); 3] = [
    // printf 'acme:pass-word' | base64
    (
        "basic",
        "{basic: {user: acme, password: 'env:PASSWORD'}}",
        "authorization: Basic YWNtZTpwYXNzLXdvcmQ=",
    ),
    ("bearer", "{bearer: {token: 'env:TOKEN'}}", "authorization: Bearer t0ken-of-acme"),
    ("header", "{header: {name: x-partner, value: 'env:PARTNER'}}", "x-partner: k3y/of+acme"),
];
/// Secrets that must not appear anywhere.
const VALUES: [&str; 4] = ["pass-word", "YWNtZTpwYXNzLXdvcmQ", "t0ken-of-acme", "k3y/of+acme"];

/// Responds with 401 and the request itself, unless the request has the right header.
fn answer(request: &str) -> String {
    let shows = |(path, _, header): &(&str, &str, &str)| {
        request.starts_with(&format!("POST /{path} ")) && request.contains(header)
    };
    let (status, body) = match KINDS.iter().any(shows) {
        true => ("200 OK", "welcome".to_owned()),
        false => ("401 Unauthorized", format!("you sent {request}")),
    };
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns the program with the right secrets, except for the variable `wrong`.
fn dev(folder: &Path, wrong: &str) -> Command {
    let mut command = lastmile(folder, &["dev", "--port", "0", "--aws-port", "0"]);
    for (name, value) in [("PASSWORD", VALUES[0]), ("TOKEN", VALUES[2]), ("PARTNER", VALUES[3])] {
        let swapped = if name == wrong { format!("old-{value}") } else { value.to_owned() };
        command.env(name, swapped);
    }
    command
}

/// Checks that no file below this folder contains one of the values.
pub(crate) fn assert_not_stored(folder: &Path, values: &[&str]) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"))
    {
        if entry.file_type().expect("a type").is_dir() {
            assert_not_stored(&entry.path(), values);
            continue;
        }
        let bytes = std::fs::read(entry.path()).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        let found: Vec<_> = values.iter().filter(|value| text.contains(**value)).collect();
        assert!(found.is_empty(), "{found:?} in {}", entry.path().display());
    }
}

#[test]
fn each_kind_is_accepted_where_nobody_else_is_and_a_wrong_secret_ends_as_the_policy_says() {
    for wrong in ["", "PASSWORD", "TOKEN", "PARTNER"] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (url, received) = deciding_receiver(answer);
        let documents = KINDS.map(|(kind, auth, _)| {
            format!(
                "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {kind}}}\n\
                 spec: {{destination: {{url: '{url}{kind}', auth: {auth}{NEVER_SLOW}}}}}\n"
            )
        });
        std::fs::write(folder.path().join("subscriptions.yaml"), documents.join("---\n"))
            .expect("a file");
        std::fs::write(folder.path().join("event.json"), EVENT).expect("a file");
        let mut running = Running::start(dev(folder.path(), wrong));
        let queue = word(&running.line_with("ready:").replace("queue ", "queue="), "queue=");
        let queue = queue.trim_start_matches("queue=");
        let publish = ["publish", "--topic", "shop/orders", "--queue-url", queue, "event.json"];
        assert_eq!(run(folder.path(), &publish).1, Some(0));
        for _ in KINDS {
            received.recv_timeout(WAIT).expect("a request");
        }
        let refused = usize::from(!wrong.is_empty());
        running.wait_for_lines("200 OK", KINDS.len() - refused);
        running.wait_for_lines("401 Unauthorized", refused);
        // This status is not retried by default, so the delivery becomes a dead letter at once.
        running.wait_for_lines("dead letter stored", refused);
        running.signal("INT");
        running.code();
        let seen = running.seen();
        let found: Vec<&str> = VALUES.into_iter().filter(|value| seen.contains(value)).collect();
        assert!(found.is_empty(), "{found:?} in {seen}");
        assert_not_stored(folder.path(), &VALUES);
    }
}

#[test]
fn no_page_shows_what_was_sent_even_when_a_destination_repeats_it() {
    let Some(server) = TokenServer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (url, _received) = deciding_receiver(|request| {
        let body = format!("you sent {request}");
        let head = format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {}", body.len());
        format!("{head}\r\nconnection: close\r\n\r\n{body}")
    });
    let documents = KINDS.map(|(kind, auth, _)| {
        subscription(kind, &format!("{url}{kind}"), &format!(", auth: {auth}"), "")
    });
    // One client's requests are accepted. The other sends its token to a destination that refuses
    // and repeats it.
    let repeated = server.subscription("post").replace("/in/post", "/in/nobody");
    let taken = server.subscription("basic").replace("name: basic", "name: taken");
    let all = format!("{}{taken}---\n{repeated}", documents.concat());
    let secrets = [("PASSWORD", VALUES[0]), ("TOKEN", VALUES[2]), ("PARTNER", VALUES[3])];
    let variables = [&secrets[..], &[("CLIENT_SECRET", CLIENT_SECRET)]].concat();
    let dev = PageOf::start(folder.path(), &all, &variables);
    let mut steps = dev.stream();
    dev.publish(EVENT);
    let stored = [(); 4].map(|()| steps.step("dead letter stored"));
    let event = event_page(&stored[0]);
    let (granted, ..) = server.seen();
    let values: Vec<&str> =
        granted.iter().map(String::as_str).chain(VALUES).chain([CLIENT_SECRET]).collect();
    assert!(granted.len() >= 2, "{granted:?}");
    for path in ["/", &event, "/subscriptions", "/destinations"] {
        let page = dev.page(path);
        let found: Vec<_> = values.iter().filter(|value| page.contains(**value)).collect();
        assert!(found.is_empty(), "{found:?} on {path}");
    }
    assert!(dev.page(&event).contains("you sent"), "{}", dev.page(&event));
}

const CLIENT_SECRET: &str = "cl1ent: s+cret/of%acme";

/// oidc-provider, and a destination that accepts its tokens. The process ends when its standard
/// input closes.
struct TokenServer {
    address: String,
    process: std::process::Child,
}

impl TokenServer {
    /// `None`, reported as skipped, if this machine lacks Node.
    fn start() -> Option<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/token_server");
        let libraries = libraries::node("the token server")?;
        let mut command = Command::new("node");
        command.arg(sources.join("token_server.mjs")).arg(libraries);
        command.env("CLIENT_SECRET", CLIENT_SECRET);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("node starts");
        let mut port = String::new();
        let printed = process.stdout.take().expect("it is piped");
        BufReader::new(printed).read_line(&mut port).expect("it prints its port");
        assert!(!port.is_empty(), "the token server does not start");
        Some(Self { address: format!("127.0.0.1:{}", port.trim()), process })
    }

    /// Sends a command to the server; its source lists the commands.
    fn tell(&self, command: &str) {
        exchange(&self.address, &format!("POST /{command}"), "host: a\r\n", "");
    }

    /// A subscription of a destination that accepts tokens of the client named after `style`.
    fn subscription(&self, style: &str) -> String {
        let address = &self.address;
        format!(
            "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {style}}}\n\
             spec: {{destination: {{url: 'http://{address}/in/{style}', auth: {{oauth2: {{\
             tokenUrl: 'http://{address}/token', clientId: {style}, clientSecret: 'env:CLIENT_SECRET', \
             scope: orders.write, style: {style}}}}}{NEVER_SLOW}}}}}\n"
        )
    }

    /// Returns the granted tokens, and the numbers of accepted and refused requests.
    fn seen(&self) -> (Vec<String>, u64, u64) {
        let seen = self.all_seen();
        let count = |field: &str| seen[field].as_u64().unwrap_or(0);
        (texts(&seen["granted"]), count("delivered"), count("refused"))
    }

    fn all_seen(&self) -> serde_json::Value {
        let answer = exchange(&self.address, "GET /seen", "host: a\r\n", "");
        let body = answer.rsplit("\r\n\r\n").next().unwrap_or_default();
        let json = body.find('{').and_then(|at| body.get(at..=body.rfind('}')?));
        serde_json::from_str(json.unwrap_or_default()).unwrap_or_else(|_| panic!("{answer}"))
    }
}

fn texts(list: &serde_json::Value) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|text| text.as_str().expect("a text").to_owned()).collect()
}

impl Drop for TokenServer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn tokens_of_a_server_of_others_are_fetched_once_replaced_when_revoked_and_never_shown() {
    let Some(server) = TokenServer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let documents = ["basic", "post"].map(|style| server.subscription(style));
    std::fs::write(folder.path().join("subscriptions.yaml"), documents.join("---\n"))
        .expect("a file");
    let mut dev = Dev::start(folder.path());
    for round in 1..=2 {
        dev.publish(20);
        dev.delivered(40);
        let (granted, delivered, refused) = server.seen();
        // Each client of a process gets one token, and one more after all tokens were revoked.
        assert_eq!((granted.len(), delivered), (2 * round, 40 * round as u64));
        assert_eq!(refused > 0, round == 2);
        server.tell("revoke");
    }
    let seen = dev.end();
    assert!(!seen.contains("401 Unauthorized"), "{seen}");
    let (granted, ..) = server.seen();
    let secrets: Vec<&str> = granted.iter().map(String::as_str).chain([CLIENT_SECRET]).collect();
    let found: Vec<_> = secrets.iter().filter(|value| seen.contains(**value)).collect();
    assert!(found.is_empty(), "{found:?} in {seen}");
    assert_not_stored(folder.path(), &secrets);
}

/// `dev` with the secret of both clients.
struct Dev<'a> {
    folder: &'a Path,
    running: Running,
    queue: String,
}

impl<'a> Dev<'a> {
    fn start(folder: &'a Path) -> Self {
        let mut command = lastmile(folder, &["dev", "--port", "0", "--aws-port", "0"]);
        command.env("CLIENT_SECRET", CLIENT_SECRET);
        let mut running = Running::start(command);
        let ready = running.line_with("ready:");
        let queue = word(ready.rsplit("queue ").next().expect("a queue"), "http://");
        Self { folder, running, queue }
    }

    /// Publishes this many events in one request.
    fn publish(&self, count: usize) {
        let events: Vec<String> =
            (0..count).map(|n| EVENT.replace(r#""id":"1""#, &format!(r#""id":"{n}""#))).collect();
        let file = self.folder.join("event.json");
        std::fs::write(file, format!("[{}]", events.join(","))).expect("a file");
        let to = ["publish", "--topic", "shop/orders", "--queue-url", &self.queue, "event.json"];
        assert_eq!(run(self.folder, &to).1, Some(0));
    }

    /// Waits until this many more events are delivered.
    fn delivered(&mut self, count: usize) {
        for _ in 0..count {
            self.running.line_with("200 OK");
        }
    }

    /// Ends the program and returns its output.
    fn end(mut self) -> String {
        self.running.signal("INT");
        self.running.code();
        self.running.seen()
    }
}

#[test]
fn a_thousand_events_at_once_need_one_token_and_another_only_when_it_ends_or_is_refused() {
    let Some(server) = TokenServer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("subscriptions.yaml"), server.subscription("basic"))
        .expect("a file");
    let mut dev = Dev::start(folder.path());
    dev.publish(1_000);
    dev.delivered(1_000);
    let (granted, delivered, refused) = server.seen();
    assert_eq!((granted.len(), delivered, refused), (1, 1_000, 0));
    // In the middle of the next thousand events, the server revokes every token.
    server.tell("revoke-at/1500");
    dev.publish(1_000);
    dev.delivered(1_000);
    let (granted, delivered, refused) = server.seen();
    assert_eq!((granted.len(), delivered, refused > 0), (2, 2_000, true));
    let seen = dev.end();
    let attempts = |number: u32| seen.matches(&format!("attempt {number} ")).count();
    assert_eq!((attempts(1), attempts(2)), (2_000, 0));
    // Another process gets its own token, which expires soon.
    server.tell("life/2");
    let mut dev = Dev::start(folder.path());
    dev.publish(1);
    dev.delivered(1);
    server.tell("life/3600");
    // The server has granted three tokens, or more on a machine where a token expired before its
    // use.
    let short = server.seen().0.len();
    while server.seen().0.len() == short {
        dev.publish(1);
        dev.delivered(1);
    }
    dev.publish(1_000);
    dev.delivered(1_000);
    assert_eq!(server.seen().0.len(), short + 1);
    let seen = dev.end();
    assert!(!seen.contains("attempt 2 "), "{seen}");
    let (granted, ..) = server.seen();
    let secrets: Vec<&str> = granted.iter().map(String::as_str).chain([CLIENT_SECRET]).collect();
    assert_not_stored(folder.path(), &secrets);
}

#[test]
fn a_token_whose_key_was_replaced_is_replaced_too() {
    let Some(server) = TokenServer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let signed = server.subscription("basic").replace("scope:", "resource: 'urn:orders', scope:");
    std::fs::write(folder.path().join("subscriptions.yaml"), signed).expect("a file");
    let mut dev = Dev::start(folder.path());
    for round in 1..=2 {
        dev.publish(20);
        dev.delivered(20);
        let seen = server.all_seen();
        // Signed tokens have three parts, separated by points.
        let shown = texts(&seen["shown"]);
        assert!(shown.iter().all(|token| token.split('.').count() == 3), "{shown:?}");
        assert_eq!((shown.len(), &seen["delivered"]), (round, &(20 * round).into()));
        assert_eq!(seen["refused"].as_u64() > Some(0), round == 2);
        server.tell("rotate");
    }
    let printed = dev.end();
    let shown = texts(&server.all_seen()["shown"]);
    let parts: Vec<&str> = shown.iter().flat_map(|token| token.split('.').skip(1)).collect();
    assert!(!printed.contains("attempt 2 ") && !parts.iter().any(|part| printed.contains(part)));
    assert_not_stored(folder.path(), &parts);
}

#[test]
fn what_try_shows_is_taken_by_whom_a_token_server_of_others_vouches_to() {
    let Some(server) = TokenServer::start() else { return };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let documents = ["basic", "post"].map(|style| server.subscription(style));
    std::fs::write(folder.path().join("s.yaml"), documents.join("---\n")).expect("a file");
    for (number, style) in (1..).zip(["basic", "post"]) {
        let name = format!("shop/orders/{style}");
        let words = ["try", "-f", "s.yaml", &name, "--sample", "--env", "CLIENT_SECRET"];
        let mut command = lastmile(folder.path(), &words);
        let tried = command.env("CLIENT_SECRET", CLIENT_SECRET).output();
        let (printed, code) = printed(&tried.expect("the program runs"));
        let (granted, delivered, _) = server.seen();
        assert!(code == Some(0) && granted.len() == number, "{printed}");
        assert_eq!(delivered, number as u64, "{printed}");
        let secrets = granted.iter().map(String::as_str).chain([CLIENT_SECRET]);
        assert!(secrets.into_iter().all(|secret| !printed.contains(secret)), "{printed}");
    }
}

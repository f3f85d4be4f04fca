//! nginx as a destination. It accepts only clients with a certificate of one authority. No machine
//! trusts the authority of its own certificate.
//!
//! On a machine without nginx, the test is reported as skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::net::TcpSocket;

use crate::auth::{NEVER_SLOW, assert_not_stored};
use crate::libraries;
use crate::programs::{Running, lastmile, printed, run, word};

/// The program's locations; it is not always on the path.
const PROGRAMS: [&str; 2] = ["nginx", "/usr/sbin/nginx"];
const EVENTS: usize = 20;
/// The number of checks, for a minute in total.
const LOOKS: usize = 1_200;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One process in the foreground. For each request, it logs the connection, the caller, the path
/// and the status.
const CONFIGURATION: &str = r#"
daemon off; master_process off; pid nginx.pid; error_log stderr notice;
events { worker_connections 256; }
http {
  log_format seen '$connection|$ssl_client_s_dn|$uri|$status'; access_log seen.log seen;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {
    listen 127.0.0.1:PORT ssl http2;
    ssl_certificate server.pem; ssl_certificate_key server.key;
    ssl_client_certificate clients.pem; ssl_verify_client on;
    location / { return 200 "welcome"; }
  }
}
"#;

/// A certificate and its private key, both in PEM form.
struct Pair {
    certificate: String,
    key: String,
}

/// A certificate authority.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let certificate = pem("CERTIFICATE", certificate.der());
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, name: &str) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let certificate = params(name).signed_by(&key, &self.issuer).expect("a certificate");
        Pair {
            certificate: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", &key.serialize_der()),
        }
    }
}

/// Returns the nginx program, if this machine has it.
fn program() -> Option<&'static str> {
    let runs = |program: &&str| Command::new(program).arg("-v").output().is_ok();
    let found = PROGRAMS.into_iter().find(runs);
    if found.is_none() {
        libraries::skipped("a destination that wants a certificate", "nginx");
    }
    found
}

/// Starts nginx with this server certificate, for clients of this authority. Returns its port.
fn start(program: &str, folder: &Path, server: &Pair, clients: &Authority) -> (Running, u16) {
    // nginx refuses port 0. This socket is bound but does not listen, so nginx may use the port,
    // and the system assigns it to no other process.
    let reserved = TcpSocket::new_v4().expect("a socket");
    reserved.set_reuseaddr(true).expect("an option of a new socket");
    reserved.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let port = reserved.local_addr().expect("an address").port();
    let configuration = CONFIGURATION.replace("PORT", &port.to_string());
    for (name, text) in [
        ("nginx.conf", configuration.as_str()),
        ("server.pem", &server.certificate),
        ("server.key", &server.key),
        ("clients.pem", &clients.certificate),
    ] {
        std::fs::write(folder.join(name), text).expect("written");
    }
    let mut command = Command::new(program);
    command.current_dir(folder).args(["-e", "stderr", "-c", "nginx.conf", "-p"]).arg(folder);
    let mut running = Running::start(command);
    running.line_with("event method");
    (running, port)
}

/// Returns a subscription with this name and `auth`, which trusts this authority.
fn subscription(name: &str, port: u16, auth: &str, trusted: Option<&Authority>) -> String {
    let bundle =
        trusted.map(|authority| format!(", tls: {{caBundle: {:?}}}", authority.certificate));
    format!(
        "apiVersion: lastmile.dev/v1\nkind: Subscription\nmetadata: {{namespace: shop, topic: orders, name: {name}}}\n\
         spec: {{destination: {{url: 'https://127.0.0.1:{port}/{name}'{auth}{}{NEVER_SLOW}}}}}\n---\n",
        bundle.unwrap_or_default()
    )
}

fn certificate(name: &str) -> String {
    format!(
        ", auth: {{clientCertificate: {{certificate: 'env:{name}_CERTIFICATE', key: 'env:{name}_KEY'}}}}"
    )
}

/// The callers of a path with the statuses they got, and the number of requests.
type Callers = BTreeMap<String, usize>;

/// Waits until the log of nginx has this many lines. nginx writes a line after it has sent the
/// response.
fn log(folder: &Path, lines: usize) -> String {
    for _ in 0..LOOKS {
        let log = std::fs::read_to_string(folder.join("seen.log")).expect("a log");
        if log.ends_with('\n') && log.lines().count() >= lines {
            return log;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    panic!("fewer than {lines} lines: {:?}", std::fs::read_to_string(folder.join("seen.log")));
}

/// Waits for this many requests in the log of nginx. Returns the callers by path, and the callers
/// by connection.
fn seen(
    folder: &Path,
    requests: usize,
) -> (BTreeMap<String, Callers>, BTreeMap<String, BTreeSet<String>>) {
    let (mut paths, mut connections) = (BTreeMap::new(), BTreeMap::new());
    for line in log(folder, requests).lines() {
        let [connection, caller, path, status] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let by: &mut Callers = paths.entry(path.to_owned()).or_default();
        *by.entry(format!("{caller} {status}")).or_default() += 1;
        let callers: &mut BTreeSet<String> = connections.entry(connection.to_owned()).or_default();
        callers.insert(caller.to_owned());
    }
    (paths, connections)
}

#[test]
fn nginx_takes_the_right_certificate_and_no_other_and_no_connection_has_two_of_them() {
    let Some(program) = program() else { return };
    let [ours, clients, others] = ["ours", "clients", "others"].map(Authority::new);
    let [a, b, wrong] = [clients.issue("a"), clients.issue("b"), others.issue("c")];
    let served = tempfile::tempdir().expect("a folder");
    let (_nginx, port) = start(program, served.path(), &ours.issue("127.0.0.1"), &clients);
    let folder = tempfile::tempdir().expect("a folder");
    let documents = [
        subscription("a", port, &certificate("A"), Some(&ours)),
        subscription("b", port, &certificate("B"), Some(&ours)),
        subscription("wrong", port, &certificate("WRONG"), Some(&ours)),
        subscription("none", port, "", Some(&ours)),
        subscription("untrusted", port, &certificate("A"), None),
    ];
    std::fs::write(folder.path().join("subscriptions.yaml"), documents.concat()).expect("written");
    let events: Vec<String> = (0..EVENTS)
        .map(|id| format!(r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"t"}}"#))
        .collect();
    std::fs::write(folder.path().join("event.json"), format!("[{}]", events.join(",")))
        .expect("written");
    let mut command = lastmile(folder.path(), &["dev", "--port", "0", "--aws-port", "0"]);
    for (name, pair) in [("A", &a), ("B", &b), ("WRONG", &wrong)] {
        command.env(format!("{name}_CERTIFICATE"), &pair.certificate);
        command.env(format!("{name}_KEY"), &pair.key);
    }
    let mut running = Running::start(command);
    let queue =
        word(running.line_with("ready:").rsplit("queue ").next().expect("a queue"), "http://");
    let publish = ["publish", "--topic", "shop/orders", "--queue-url", &queue, "event.json"];
    assert_eq!(run(folder.path(), &publish).1, Some(0));
    running.wait_for_lines("attempt 1  200 OK", 2 * EVENTS);
    // The lines of these attempts are alike, so only the dead letters are counted.
    running.wait_for_lines("dead-lettered  UndeliverableDueToHttpBadRequest", 2 * EVENTS);
    // After ten of these failures the destination is on probation, and the other deliveries are
    // deferred.
    running.wait_for_lines("certificate from an unknown issuer", 1);
    running.signal("INT");
    running.code();
    let (paths, connections) = seen(served.path(), 4 * EVENTS);
    let all = |caller: &str| BTreeMap::from([(caller.to_owned(), EVENTS)]);
    let expected =
        [("/a", "CN=a 200"), ("/b", "CN=b 200"), ("/none", "- 400"), ("/wrong", "CN=c 400")];
    let expected = expected.map(|(path, caller)| (path.to_owned(), all(caller)));
    assert_eq!(paths, BTreeMap::from(expected));
    assert!(connections.values().all(|callers| callers.len() == 1), "{connections:?}");
    let printed = running.seen();
    for (name, why) in
        [("wrong", "400"), ("none", "400"), ("untrusted", "certificate from an unknown issuer")]
    {
        let is_reported =
            |line: &&str| line.contains(&format!("shop/orders/{name}")) && line.contains(why);
        assert!(printed.lines().any(|line| is_reported(&line)), "{name}: {printed}");
    }
    let keys: Vec<&str> =
        [&a, &b, &wrong].map(|pair| pair.key.lines().nth(1).expect("its bytes")).into();
    let found: Vec<_> = keys.iter().filter(|key| printed.contains(**key)).collect();
    assert!(found.is_empty(), "a key in {printed}");
    assert_not_stored(folder.path(), &keys);
}

#[test]
fn nginx_takes_what_try_sends_and_the_command_that_it_prints() {
    let Some(program) = program() else { return };
    let [ours, clients] = ["ours", "clients"].map(Authority::new);
    let of_client = clients.issue("a");
    let served = tempfile::tempdir().expect("a folder");
    let (_nginx, port) = start(program, served.path(), &ours.issue("127.0.0.1"), &clients);
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    write("s.yaml", &subscription("a", port, &certificate("A"), Some(&ours)));
    let words = [
        "try",
        "-f",
        "s.yaml",
        "shop/orders/a",
        "--sample",
        "--env",
        "A_CERTIFICATE",
        "--env",
        "A_KEY",
    ];
    let of_person = |words: &[&str]| {
        let mut command = lastmile(folder.path(), words);
        command.env("A_CERTIFICATE", &of_client.certificate).env("A_KEY", &of_client.key);
        command.output().expect("the program runs")
    };
    let (printed, code) = printed(&of_person(&words));
    assert!(code == Some(0) && printed.contains("welcome"), "{printed}");
    let key = of_client.key.lines().nth(1).expect("its bytes");
    assert!(!printed.contains(key), "{printed}");

    let command = of_person(&[&words[..], &["--print"]].concat()).stdout;
    let command = String::from_utf8(command).expect("a text");
    write("a.pem", &of_client.certificate);
    write("a.key", &of_client.key);
    write("ca.pem", &ours.certificate);
    let mut shell = Command::new("sh");
    shell.current_dir(folder.path()).env("LASTMILE_CERTIFICATE", "a.pem");
    shell.env("LASTMILE_CERTIFICATE_KEY", "a.key").env("LASTMILE_CA_BUNDLE", "ca.pem");
    let ran = shell.args(["-c", &format!("{} --fail", command.trim_end())]).output();
    let ran = ran.expect("a shell");
    assert!(ran.status.success() && !command.contains(key), "{command}: {ran:?}");
    let (paths, _) = seen(served.path(), 2);
    assert_eq!(paths["/a"], BTreeMap::from([("CN=a 200".to_owned(), 2)]));
}

//! Receives signed events: verifies the signature, stores each event once, responds, and handles
//! the event afterwards.
//!
//! ```sh
//! WEBHOOK_KEYS='whsec_… whpk_…' cargo run
//! ```
//!
//! `WEBHOOK_KEYS` has the shared secrets (`whsec_`) and public keys (`whpk_`) of the sender. It has
//! several keys while one is being replaced. `PORT` defaults to 9190, and `EVENTS` to the folder
//! `events`.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::UNIX_EPOCH;
use std::{env, process, thread};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{PUBLIC_KEY_LENGTH, Signature, VerifyingKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

const TOLERANCE_SECONDS: u64 = 5 * 60;
/// The minimum of Standard Webhooks. With an empty secret, anybody could sign.
const SECRET_MIN_BYTES: usize = 24;
const BODY_MAX_BYTES: usize = 2 * 1_024 * 1_024;

const NO_KEY: &str =
    "has no key: set it to the secret of the sender, whsec_…, or its public key, whpk_…";
const PRIVATE_KEY: &str =
    "has a private key (whsk_), which only the sender needs: use its public key, whpk_…";
const NO_PREFIX: &str =
    "has a key without its prefix: a secret begins with whsec_, a public key with whpk_";
const NOT_BASE64: &str =
    "has a key that is not base64 after its prefix: copy the whole key, also the = at its end";

/// Your work. It may be slow. If this program ends in the middle of it, the next start repeats it.
fn handle(body: &[u8]) -> io::Result<()> {
    println!("handled {}", String::from_utf8_lossy(body));
    Ok(())
}

enum Key {
    Shared(Vec<u8>),
    Public(VerifyingKey),
}

impl Key {
    /// Reads a key. The error describes the problem and the remedy, and never contains the key.
    fn read(text: &str) -> Result<Self, String> {
        let (prefix, encoded) = text.split_once('_').unwrap_or_default();
        let read = match prefix {
            "whsec" => Self::shared,
            "whpk" => Self::public,
            "whsk" => return Err(PRIVATE_KEY.to_owned()),
            _ => return Err(NO_PREFIX.to_owned()),
        };
        read(STANDARD.decode(encoded).map_err(|_| NOT_BASE64)?)
    }

    fn shared(secret: Vec<u8>) -> Result<Self, String> {
        match secret.len() {
            SECRET_MIN_BYTES.. => Ok(Self::Shared(secret)),
            bytes => Err(format!(
                "has a secret of {bytes} bytes; it needs at least {SECRET_MIN_BYTES}: `lastmile secret` makes one"
            )),
        }
    }

    fn public(bytes: Vec<u8>) -> Result<Self, String> {
        let key: Result<&[u8; PUBLIC_KEY_LENGTH], _> = bytes.as_slice().try_into();
        match key.map(VerifyingKey::from_bytes) {
            Ok(Ok(key)) => Ok(Self::Public(key)),
            Ok(Err(_)) | Err(_) => Err(format!(
                "has a public key of {} bytes; it needs {PUBLIC_KEY_LENGTH}, of an Ed25519 key: copy the whole whpk_… of \
                 the sender",
                bytes.len()
            )),
        }
    }

    /// Returns true if this key has made this entry of `webhook-signature` for a text.
    fn has_signed(&self, entry: &str, text: &[u8]) -> bool {
        let Some((scheme, encoded)) = entry.split_once(',') else { return false };
        let Ok(signature) = STANDARD.decode(encoded) else { return false };
        match self {
            Self::Shared(secret) if scheme == "v1" => {
                let mac = Hmac::<Sha256>::new_from_slice(secret);
                mac.is_ok_and(|mac| mac.chain_update(text).verify_slice(&signature).is_ok())
            }
            Self::Public(key) if scheme == "v1a" => {
                let signature = Signature::from_slice(&signature);
                signature.is_ok_and(|signature| key.verify_strict(text, &signature).is_ok())
            }
            Self::Shared(_) | Self::Public(_) => false,
        }
    }
}

struct Inbox {
    keys: Vec<Key>,
    events: PathBuf,
    work: Sender<String>,
}

impl Inbox {
    /// Returns the id of a message that one of the keys has signed recently, as limited by
    /// [`TOLERANCE_SECONDS`].
    fn valid_id<'a>(&self, headers: &'a HeaderMap, body: &[u8]) -> Option<&'a str> {
        let header = |name: &str| headers.get(name)?.to_str().ok();
        let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
        let now = UNIX_EPOCH.elapsed().ok()?.as_secs();
        if timestamp.parse::<u64>().ok()?.abs_diff(now) > TOLERANCE_SECONDS {
            return None;
        }
        let text = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
        let mut entries = header("webhook-signature")?.split(' ');
        entries.any(|entry| self.keys.iter().any(|key| key.has_signed(entry, &text))).then_some(id)
    }

    /// Stores an event on disk under the id of its message; `None` if it exists already. With a
    /// database, use an INSERT with a unique key.
    fn store(&self, id: &str, body: &[u8]) -> io::Result<Option<String>> {
        let name = hex::encode(Sha256::digest(id));
        let unfinished = self.events.join(format!(".{name}.{:?}", thread::current().id()));
        let mut file = File::create(&unfinished)?;
        file.write_all(body)?;
        file.sync_all()?;
        let linked = fs::hard_link(&unfinished, self.events.join(&name));
        fs::remove_file(&unfinished)?;
        match linked {
            Err(problem) if problem.kind() == ErrorKind::AlreadyExists => Ok(None),
            linked => linked.map(|()| Some(name)),
        }
    }
}

async fn receive(State(inbox): State<Arc<Inbox>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    // The work waits for the disk, so it must not block the connections.
    let received = tokio::task::spawn_blocking(move || {
        let Some(id) = inbox.valid_id(&headers, &body) else {
            println!(
                "refused a request: no key of WEBHOOK_KEYS has signed it in the last five minutes"
            );
            return StatusCode::UNAUTHORIZED;
        };
        println!("verified {id}");
        match inbox.store(id, &body) {
            Ok(Some(name)) => {
                // The worker ends only with this program.
                let _ = inbox.work.send(name);
                StatusCode::ACCEPTED
            }
            Ok(None) => StatusCode::OK,
            // The event is not stored, so the sender must retry.
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    });
    received.await.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Handles the events one after the other.
fn work(events: &Path, names: &Receiver<String>) {
    for name in names {
        let handled = fs::read(events.join(&name)).and_then(|body| handle(&body));
        let done = handled.and_then(|()| fs::write(events.join(format!("{name}.done")), ""));
        if let Err(problem) = done {
            println!("it is tried again at the next start: {name}: {problem}");
        }
    }
}

/// Returns the events that were stored but not handled.
fn unfinished(events: &Path) -> io::Result<Vec<String>> {
    let names =
        fs::read_dir(events)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_new =
        |name: &String| !name.contains('.') && !events.join(format!("{name}.done")).exists();
    Ok(names.filter(is_new).collect())
}

fn read_keys(texts: &str) -> Result<Vec<Key>, String> {
    let keys = texts.split_whitespace().map(Key::read).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() { Err(NO_KEY.to_owned()) } else { Ok(keys) }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let keys = read_keys(&env::var("WEBHOOK_KEYS").unwrap_or_default())
        .map_err(|problem| format!("WEBHOOK_KEYS {problem}"))?;
    let events = PathBuf::from(env::var("EVENTS").unwrap_or_else(|_| "events".to_owned()));
    fs::create_dir_all(&events)?;
    let (sender, names) = channel();
    for name in unfinished(&events)? {
        sender.send(name)?;
    }
    let inbox = Arc::new(Inbox { keys, events: events.clone(), work: sender });
    thread::spawn(move || work(&events, &names));
    let app = Router::new().route("/{*path}", post(receive)).route("/", post(receive));
    let app = app.layer(DefaultBodyLimit::max(BODY_MAX_BYTES)).with_state(inbox);
    let port = env::var("PORT").unwrap_or_else(|_| "9190".to_owned()).parse::<u16>()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}/", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}

#[tokio::main]
async fn main() {
    if let Err(problem) = run().await {
        eprintln!("{problem}");
        process::exit(1);
    }
}

//! A server that does exactly what a test tells it, down to the byte: answers, halves of answers, silence, resets.
//!
//! It is raw TCP on purpose: what an HTTP library would never send is what destinations do send. For every request it
//! asks the script for the steps that follow, and it keeps what it was asked. Dropping it closes every connection.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A request longer than this is cut off: no test sends one.
const REQUEST_MAX_BYTES: usize = 4 * 1_024 * 1_024;
/// The pause between the bytes of [`Step::Drip`].
const DRIP_EVERY: Duration = Duration::from_millis(20);

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The request line and the headers, without the empty line.
    pub head: String,
    /// The body, as long as `content-length` says.
    pub body: Vec<u8>,
}

impl Asked {
    /// The value of a header; the name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        pairs.filter(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }
}

/// What the server does next on a connection. After the last step it waits for the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes this byte again and again, slowly, for as long as the client stays.
    Drip(u8),
    /// Says nothing more, and keeps the connection open.
    Silence,
    /// Closes the connection in order.
    Close,
    /// Breaks the connection off.
    Reset,
}

/// A whole answer with this status line, these headers and this body.
#[must_use]
pub fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Step {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    Step::Write([head.as_bytes(), body].concat())
}

type Script = Arc<dyn Fn(&Asked) -> Vec<Step> + Send + Sync>;

/// A running server.
#[derive(Debug)]
pub struct Scripted {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Dropped with the server, which ends every connection.
    _connections: JoinSet<()>,
}

impl Scripted {
    /// Starts on a free port of the loopback address.
    ///
    /// # Errors
    /// When the machine has no port left.
    pub async fn start(script: impl Fn(&Asked) -> Vec<Step> + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let asked = Arc::default();
        let mut connections = JoinSet::new();
        connections.spawn(listen(listener, Arc::new(script), Arc::clone(&asked)));
        Ok(Self { address, asked, _connections: connections })
    }

    /// Its address, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn listen(listener: TcpListener, script: Script, asked: Arc<Mutex<Vec<Asked>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (script, asked) = (Arc::clone(&script), Arc::clone(&asked));
        connections.spawn(async move {
            // A client that leaves is the client's affair: the test looks at what it made of it.
            let _ = converse(stream, &script, &asked).await;
        });
    }
}

/// Serves one connection, request after request, until a step or the client ends it.
async fn converse(mut stream: TcpStream, script: &Script, asked: &Mutex<Vec<Asked>>) -> io::Result<()> {
    let mut received = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut received).await? {
        let steps = script(&request);
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        for step in steps {
            match step {
                Step::Write(bytes) => stream.write_all(&bytes).await?,
                Step::Drip(byte) => drip(&mut stream, byte).await?,
                Step::Silence => std::future::pending().await,
                Step::Close => return Ok(()),
                Step::Reset => return stream.set_zero_linger(),
            }
        }
    }
    Ok(())
}

async fn drip(stream: &mut TcpStream, byte: u8) -> io::Result<()> {
    let mut ticks = tokio::time::interval(DRIP_EVERY);
    loop {
        ticks.tick().await;
        stream.write_all(&[byte]).await?;
    }
}

/// The next request of a connection; `None` when the client has left.
async fn next_request(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Option<Asked>> {
    loop {
        if let Some((request, length)) = first_request(received) {
            received.drain(..length);
            return Ok(Some(request));
        }
        if received.len() > REQUEST_MAX_BYTES || stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}

/// The first request among the bytes and its length, once all of it is there.
fn first_request(received: &[u8]) -> Option<(Asked, usize)> {
    const END: &[u8] = b"\r\n\r\n";
    let head_length = received.windows(END.len()).position(|window| window == END)?;
    let head = String::from_utf8_lossy(&received[..head_length]).into_owned();
    let mut request = Asked { head, body: Vec::new() };
    let body_length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let body_at = head_length + END.len();
    request.body = received.get(body_at..body_at + body_length)?.to_vec();
    Some((request, body_at + body_length))
}

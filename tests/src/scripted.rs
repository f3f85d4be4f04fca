//! A server that sends the bytes that a test scripts: responses, partial responses, silence,
//! resets.
//!
//! It uses raw TCP because real destinations send data that an HTTP library would never send. It
//! records each request and asks the script for the next steps. It can also send before it receives
//! a request, with or without TLS. Dropping the server closes every connection.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Longer requests are cut off. No test sends one.
const REQUEST_MAX_BYTES: usize = 4 * 1_024 * 1_024;
/// The pause between the bytes of [`Step::Drip`].
const DRIP_EVERY: Duration = Duration::from_millis(20);

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedRequest {
    /// The request line and the headers, without the empty line.
    pub head: String,
    /// The body, with the length of `content-length`.
    pub body: Vec<u8>,
    /// The client certificate of the TLS handshake.
    pub certificate: Option<Vec<u8>>,
}

impl ScriptedRequest {
    /// Returns the value of a header. The case of the name is ignored.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        pairs
            .filter(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .next()
    }
}

/// The server's next action on a connection. After the last step, the server waits for the next
/// request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes these bytes repeatedly, as fast as the client reads them.
    Flood(Vec<u8>),
    /// Writes these bytes repeatedly, and reads and discards all data of the client.
    FloodAndDiscard(Vec<u8>),
    /// Writes this byte repeatedly, slowly, until the client disconnects.
    Drip(u8),
    /// Reads and discards this many bytes from the client.
    Read(usize),
    /// Sends nothing for this long.
    Pause(Duration),
    /// Sends nothing until all exchanges of the barrier have reached this step.
    Meet(Arc<Barrier>),
    /// Sends and reads nothing more, and keeps the connection open.
    Silence,
    /// Closes the connection cleanly.
    Close,
    /// Resets the connection.
    Reset,
}

/// A complete response with this status line, these headers and this body.
#[must_use]
pub fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Step {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    Step::Write([head.as_bytes(), body].concat())
}

/// The steps that follow a request.
pub type Answers = Arc<dyn Fn(&ScriptedRequest) -> Vec<Step> + Send + Sync>;

/// The time at which the server runs its steps.
#[derive(Clone)]
pub enum Script {
    /// After each request, depending on the request.
    Answers(Answers),
    /// Once, as soon as a client connects. Data of the client is read only by a step.
    OnConnect(Vec<Step>),
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers(_) => f.write_str("Answers"),
            Self::OnConnect(steps) => f.debug_tuple("OnConnect").field(steps).finish(),
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Scripted {
    address: SocketAddr,
    scheme: &'static str,
    recorded: Arc<Recorded>,
    /// Aborted on drop, which closes every connection.
    _connections: JoinSet<()>,
}

/// Counts and requests that the server received.
#[derive(Debug, Default)]
struct Recorded {
    connections: AtomicUsize,
    ended: AtomicUsize,
    /// Bytes of the client that floods discarded.
    discarded_bytes: AtomicUsize,
    requests: Mutex<Vec<ScriptedRequest>>,
}

impl Scripted {
    /// Starts on a free port of the loopback address, without TLS, and responds to requests.
    ///
    /// # Errors
    /// If the machine has no free port.
    pub async fn start(
        script: impl Fn(&ScriptedRequest) -> Vec<Step> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::serve((Ipv4Addr::LOCALHOST, 0).into(), None, Script::Answers(Arc::new(script))).await
    }

    /// Starts a server without TLS that runs these steps as soon as a client connects.
    ///
    /// # Errors
    /// If the machine has no free port.
    pub async fn on_connect(steps: &[Step]) -> io::Result<Self> {
        Self::serve((Ipv4Addr::LOCALHOST, 0).into(), None, Script::OnConnect(steps.to_vec())).await
    }

    /// Starts at an address, where port 0 selects a free one. Uses TLS if `tls` has a
    /// configuration.
    ///
    /// # Errors
    /// If the address is in use.
    pub async fn serve(
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        script: Script,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let recorded = Arc::default();
        let mut connections = JoinSet::new();
        connections.spawn(listen(
            listener,
            tls.map(TlsAcceptor::from),
            script,
            Arc::clone(&recorded),
        ));
        Ok(Self { address, scheme, recorded, _connections: connections })
    }

    /// The server's base URL, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// The port on which the server listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ScriptedRequest> {
        self.recorded.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of connections so far, with or without a request.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.recorded.connections.load(Ordering::SeqCst)
    }

    /// The number of connections whose end a step or a read has detected.
    #[must_use]
    pub fn ended_connections(&self) -> usize {
        self.recorded.ended.load(Ordering::SeqCst)
    }

    /// The number of bytes that [`Step::FloodAndDiscard`] received from clients and discarded.
    #[must_use]
    pub fn discarded_bytes(&self) -> usize {
        self.recorded.discarded_bytes.load(Ordering::SeqCst)
    }
}

async fn listen(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    script: Script,
    recorded: Arc<Recorded>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        recorded.connections.fetch_add(1, Ordering::SeqCst);
        let (tls, script, recorded) = (tls.clone(), script.clone(), Arc::clone(&recorded));
        connections.spawn(async move {
            // A client may disconnect. The test checks the client's result.
            let _ = match tls {
                None => serve_connection(stream, &script, &recorded).await,
                Some(tls) => handshake_and_serve(&tls, stream, &script, &recorded).await,
            };
            recorded.ended.fetch_add(1, Ordering::SeqCst);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn handshake_and_serve(
    tls: &TlsAcceptor,
    stream: TcpStream,
    script: &Script,
    recorded: &Recorded,
) -> io::Result<()> {
    serve_connection(tls.accept(stream).await?, script, recorded).await
}

/// A connection with or without TLS.
trait Connection: AsyncRead + AsyncWrite + Unpin {
    fn tcp(&self) -> &TcpStream;

    fn certificate(&self) -> Option<Vec<u8>>;
}

impl Connection for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }

    fn certificate(&self) -> Option<Vec<u8>> {
        None
    }
}

impl Connection for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }

    fn certificate(&self) -> Option<Vec<u8>> {
        Some(self.get_ref().1.peer_certificates()?.first()?.to_vec())
    }
}

/// Serves one connection, request after request, until a step or the client ends it.
async fn serve_connection(
    mut stream: impl Connection,
    script: &Script,
    recorded: &Recorded,
) -> io::Result<()> {
    let script = match script {
        Script::Answers(script) => script,
        Script::OnConnect(steps) => {
            return run_steps(&mut stream, steps, recorded).await.map(|_| ());
        }
    };
    let mut received = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut received).await? {
        let request = ScriptedRequest { certificate: stream.certificate(), ..request };
        let steps = script(&request);
        recorded.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        if !run_steps(&mut stream, &steps, recorded).await? {
            break;
        }
    }
    Ok(())
}

/// Runs the steps. Returns false if the connection has ended.
async fn run_steps(
    stream: &mut impl Connection,
    steps: &[Step],
    recorded: &Recorded,
) -> io::Result<bool> {
    for step in steps {
        match step {
            Step::Write(bytes) => write(stream, bytes).await?,
            Step::Flood(bytes) => loop {
                write(stream, bytes).await?;
            },
            Step::FloodAndDiscard(bytes) => {
                return flood_and_discard(stream, bytes, &recorded.discarded_bytes).await;
            }
            Step::Drip(byte) => drip(stream, *byte).await?,
            Step::Read(bytes) => skip(stream, *bytes).await?,
            Step::Pause(pause) => tokio::time::sleep(*pause).await,
            Step::Meet(barrier) => _ = barrier.wait().await,
            Step::Silence => std::future::pending().await,
            Step::Close => return Ok(false),
            Step::Reset => {
                // With zero linger, closing sends RST instead of FIN.
                stream.tcp().set_zero_linger()?;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

async fn write(stream: &mut impl Connection, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Returns when the client disconnects.
async fn flood_and_discard(
    stream: &mut impl Connection,
    bytes: &[u8],
    discarded_bytes: &AtomicUsize,
) -> io::Result<bool> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let flood = async {
        loop {
            writer.write_all(bytes).await?;
            writer.flush().await?;
        }
    };
    let discard = async {
        let mut discarded = [0; 4_096];
        loop {
            match reader.read(&mut discarded).await? {
                0 => return Ok(false),
                bytes => discarded_bytes.fetch_add(bytes, Ordering::SeqCst),
            };
        }
    };
    tokio::select! {
        ended = flood => ended,
        ended = discard => ended,
    }
}

async fn drip(stream: &mut impl Connection, byte: u8) -> io::Result<()> {
    let mut ticks = tokio::time::interval(DRIP_EVERY);
    loop {
        ticks.tick().await;
        write(stream, &[byte]).await?;
    }
}

async fn skip(stream: &mut impl Connection, bytes: usize) -> io::Result<()> {
    let mut skipped = vec![0; bytes];
    stream.read_exact(&mut skipped).await.map(|_| ())
}

/// Returns the next request of a connection; `None` if the client has disconnected.
async fn next_request(
    stream: &mut impl Connection,
    received: &mut Vec<u8>,
) -> io::Result<Option<ScriptedRequest>> {
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

/// Returns the first request in the bytes and its length, once it is complete.
fn first_request(received: &[u8]) -> Option<(ScriptedRequest, usize)> {
    const END: &[u8] = b"\r\n\r\n";
    let head_length = received.windows(END.len()).position(|window| window == END)?;
    let head = String::from_utf8_lossy(&received[..head_length]).into_owned();
    let mut request = ScriptedRequest { head, body: Vec::new(), certificate: None };
    let body_length =
        request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let body_at = head_length + END.len();
    request.body = received.get(body_at..body_at + body_length)?.to_vec();
    Some((request, body_at + body_length))
}

//! The budget of a connection: the number of bytes that may be read from it in addition to the
//! bodies of responses.
//!
//! An endpoint that sends endless frames or heads would keep a connection and a core busy, because
//! the HTTP client reads as long as the connection is open. Therefore the stream below TLS counts
//! bytes. Each exchange adds [`EXCHANGE_BYTES`], and its body adds [`BYTES_PER_BODY_BYTE`] per
//! byte. A connection that exceeds its budget is closed at once. Frames are not counted: each has
//! at least nine bytes, so the budget limits them too. Each read counts as at least
//! [`READ_MIN_BYTES`], which limits packets of one byte.
//!
//! The stream also closes its connection. After a response that was not read to its end, no further
//! exchange uses the connection, and it is closed after the last exchange under way. Otherwise an
//! endpoint could send frames, and keep a core busy, while the connection is in the pool.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use futures::task::AtomicWaker;
use http::{Extensions, Response};
use hyper_util::client::legacy::connect::{CaptureConnection, Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Maximum number of bytes that one exchange may read in addition to the body of its response.
/// Consists of the longest head, 64 KiB of body that the HTTP/2 window permits in advance, and
/// 64 KiB for frames and TLS. The TLS handshake may read the same amount.
const EXCHANGE_BYTES: u64 = 384 * 1_024;
/// Number of bytes that may be read per byte of a body, including that byte. An HTTP/1 chunk with
/// one byte takes six bytes; a chunk with four bytes in a TLS record of its own takes 31.
const BYTES_PER_BODY_BYTE: u64 = 8;
/// Minimum number of bytes that one read counts for, because a read costs as much CPU time as
/// parsing some frames.
const READ_MIN_BYTES: u64 = 32;

const FLOODED: &str = "the endpoint sent more than 384 KiB in addition to the response body";
const UNREAD: &str = "an earlier response on this connection was not read completely";

/// The number of bytes that may still be read from a connection.
#[derive(Debug)]
struct Budget {
    left_bytes: u64,
    /// Number of exchanges that use the connection now.
    exchanges: u64,
    /// True if no further exchange may use the connection.
    is_retired: bool,
    is_exceeded: bool,
}

impl Budget {
    /// Creates the budget of a new connection, which begins with a TLS handshake.
    fn new() -> Self {
        Self { left_bytes: EXCHANGE_BYTES, exchanges: 0, is_retired: false, is_exceeded: false }
    }

    fn begin_exchange(&mut self) {
        self.exchanges += 1;
        self.left_bytes += EXCHANGE_BYTES;
    }

    /// Adds the allowance for `body_bytes` of a received body.
    fn extend(&mut self, body_bytes: usize) {
        self.left_bytes += BYTES_PER_BODY_BYTE * body_bytes as u64;
    }

    /// Ends an exchange. Unused budget carries over for at most one exchange. `is_read` is true if
    /// the response was read to its end.
    fn end_exchange(&mut self, is_read: bool) {
        self.exchanges -= 1;
        self.is_retired |= !is_read;
        self.left_bytes = self.left_bytes.min((self.exchanges + 1) * EXCHANGE_BYTES);
    }

    /// Subtracts the bytes of one read from the budget.
    fn spend(&mut self, bytes: usize) {
        match self.left_bytes.checked_sub(READ_MIN_BYTES.max(bytes as u64)) {
            Some(left_bytes) => self.left_bytes = left_bytes,
            None => self.is_exceeded = true,
        }
    }

    /// Returns the reason why the connection is closed; `None` while it is open.
    fn closed_because(&self) -> Option<&'static str> {
        match self {
            Self { is_exceeded: true, .. } => Some(FLOODED),
            Self { is_retired: true, exchanges: 0, .. } => Some(UNREAD),
            Self { .. } => None,
        }
    }
}

/// The budget of a connection, which its stream shares with its exchanges.
#[derive(Debug)]
struct Meter {
    budget: Mutex<Budget>,
    /// The task that reads and writes the stream of the connection.
    task: AtomicWaker,
}

impl Meter {
    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if the connection is closed. Otherwise registers the task, to be woken when the
    /// connection closes.
    fn check(&self, context: &Context<'_>) -> io::Result<()> {
        // Register before reading the budget, or a wake-up is lost.
        self.task.register(context.waker());
        match self.budget().closed_because() {
            Some(reason) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason)),
            None => Ok(()),
        }
    }
}

/// A TCP stream that closes when its budget is exceeded.
pub(super) struct MeteredStream {
    stream: TcpStream,
    meter: Arc<Meter>,
}

impl MeteredStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        let meter = Meter { budget: Mutex::new(Budget::new()), task: AtomicWaker::new() };
        Self { stream, meter: Arc::new(meter) }
    }
}

impl Connection for MeteredStream {
    fn connected(&self) -> Connected {
        Connected::new().extra(Arc::clone(&self.meter))
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.meter.check(context)?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.meter.budget().spend(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.meter.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.meter.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// The use of a connection by one exchange. If the value is dropped before the response was [read
/// whole](Self::read_whole), no further exchange uses the connection.
pub(super) struct Usage {
    captured: CaptureConnection,
    meter: Option<Arc<Meter>>,
    is_read: bool,
}

impl Usage {
    /// Starts to track an exchange, which has no connection yet.
    pub(super) fn new(captured: CaptureConnection) -> Self {
        Self { captured, meter: None, is_read: false }
    }

    /// Records the connection that the client has chosen; must be called after each poll of the
    /// client's future. The client may choose a second connection, if the first one was closed
    /// before anything was sent. A response has the meter of its connection as an extension.
    pub(super) fn notice<B, E>(&mut self, polled: &Poll<Result<Response<B>, E>>) {
        let meter = match polled {
            Poll::Ready(Ok(response)) => response.extensions().get().cloned(),
            Poll::Ready(Err(_)) | Poll::Pending => meter(&self.captured),
        };
        let Some(meter) = meter else { return };
        if self.meter.as_ref().is_some_and(|known| Arc::ptr_eq(known, &meter)) {
            return;
        }
        meter.budget().begin_exchange();
        if let Some(closed) = self.meter.replace(meter) {
            closed.budget().end_exchange(false);
        }
    }

    /// Adds the allowance for `body_bytes` of a received body.
    pub(super) fn extend(&self, body_bytes: usize) {
        if let Some(meter) = &self.meter {
            meter.budget().extend(body_bytes);
        }
    }

    /// Marks the response as read to its end, so that another exchange may use the connection.
    pub(super) fn read_whole(mut self) {
        self.is_read = true;
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        let Some(meter) = &self.meter else { return };
        if !self.is_read
            && let Some(connected) = &*self.captured.connection_metadata()
        {
            // Keep the pool from reusing the connection.
            connected.poison();
        }
        meter.budget().end_exchange(self.is_read);
        meter.task.wake();
    }
}

/// Returns the meter of the connection that the client has chosen.
fn meter(captured: &CaptureConnection) -> Option<Arc<Meter>> {
    let mut extras = Extensions::new();
    captured.connection_metadata().as_ref()?.get_extras(&mut extras);
    extras.remove()
}

#[cfg(test)]
mod tests {
    use std::future;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A connection during its first exchange.
    fn used() -> Budget {
        let mut budget = Budget::new();
        budget.begin_exchange();
        budget
    }

    #[test]
    fn an_exchange_may_read_its_budget_and_no_more() {
        let mut budget = used();
        budget.spend(2 * EXCHANGE_BYTES as usize);
        assert_eq!(budget.closed_because(), None);
        budget.spend(1);
        assert_eq!(budget.closed_because(), Some(FLOODED));
        // A later exchange on the connection does not reopen it.
        budget.begin_exchange();
        assert_eq!(budget.closed_because(), Some(FLOODED));
    }

    #[test]
    fn a_body_of_any_length_is_read() {
        let mut budget = used();
        for _ in 0..1_000 {
            budget.spend(8 * 1_024);
            budget.extend(1_024);
        }
        assert_eq!(budget.closed_because(), None);
    }

    #[test]
    fn a_body_is_read_in_pieces_of_four_bytes_and_not_of_one() {
        let closed_after = |bytes: usize| {
            let mut budget = used();
            for _ in 0..64 * 1_024 / bytes {
                budget.spend(bytes);
                budget.extend(bytes);
            }
            budget.closed_because()
        };
        assert_eq!((closed_after(4), closed_after(1)), (None, Some(FLOODED)));
    }

    #[test]
    fn nothing_is_saved_up() {
        let mut budget = Budget::new();
        for _ in 0..1_000 {
            budget.begin_exchange();
            budget.extend(64 * 1_024);
            budget.end_exchange(true);
        }
        assert_eq!(budget.left_bytes, EXCHANGE_BYTES);
    }

    #[test]
    fn a_connection_without_an_answer_is_closed_with_its_last_exchange() {
        let mut budget = used();
        budget.begin_exchange();
        budget.end_exchange(false);
        assert_eq!(budget.closed_because(), None);
        budget.end_exchange(true);
        assert_eq!(budget.closed_because(), Some(UNREAD));
    }

    #[tokio::test]
    async fn a_stream_passes_on_what_is_read_and_written_and_counts_what_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let connecting = TcpStream::connect(listener.local_addr().expect("an address"));
        let (connected, accepted) = tokio::join!(connecting, listener.accept());
        let mut stream = MeteredStream::new(connected.expect("a connection"));
        let (mut peer, _) = accepted.expect("a connection");
        peer.write_all(&[b'b'; 100]).await.expect("a write");
        let mut space = [b'a'; 300];
        let mut buffer = ReadBuf::new(&mut space);
        buffer.set_filled(200);
        let read = future::poll_fn(|context| Pin::new(&mut stream).poll_read(context, &mut buffer));
        read.await.expect("a read");
        assert_eq!(buffer.filled(), [[b'a'; 100], [b'a'; 100], [b'b'; 100]].concat());
        assert_eq!(stream.meter.budget().left_bytes, EXCHANGE_BYTES - 100);
        assert!(stream.is_write_vectored(), "as a stream of TCP is");
        stream.write_all(b"plain").await.expect("a write");
        stream.shutdown().await.expect("the end");
        let mut written = String::new();
        peer.read_to_string(&mut written).await.expect("all, though the stream is still there");
        assert_eq!(written, "plain");
    }

    #[test]
    fn the_message_names_the_budget() {
        assert!(FLOODED.contains(&format!("{} KiB", EXCHANGE_BYTES / 1_024)));
    }
}

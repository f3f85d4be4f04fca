//! A catalogue of hostile destinations, shared by the contract tests of the sender and the test of
//! its memory use.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::certificates::{Authority, Validity};
use crate::scripted::{Script, Scripted, Step, answer};

/// 16 MiB of zeros, compressed to 16 KiB.
pub const BOMB: &[u8] = include_bytes!("../fixtures/hostile/16-mib-of-nothing.gz");

/// One hostile behaviour.
#[derive(Debug, Clone)]
pub struct Hostility {
    /// What it does.
    pub name: &'static str,
    /// How the exchange should end.
    pub ends: Ends,
    over: Over,
    greets: bool,
    steps: Vec<Step>,
}

/// How an exchange with a hostile destination should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// With a response of this status, and no more of the body than is read.
    Answered(u16),
    /// With a timeout.
    TimedOut,
    /// With a broken connection.
    Broken,
    /// In any of these ways: it is a race.
    Somehow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// TCP that speaks HTTP/1.
    Clear,
    /// TCP where TLS is expected.
    NoTls,
    /// HTTP/2 over TLS.
    Http2,
}

impl Hostility {
    /// Starts a server with this behaviour, with a certificate of this authority if it needs one.
    ///
    /// # Errors
    /// If the machine has no free port, or no key can be generated.
    pub async fn serve(&self, authority: &Authority) -> io::Result<Scripted> {
        let steps = self.steps.clone();
        let script = if self.greets {
            Script::Greets(steps)
        } else {
            Script::Answers(Arc::new(move |_| steps.clone()))
        };
        let tls = match self.over {
            Over::Clear | Over::NoTls => None,
            Over::Http2 => Some(
                authority
                    .server("127.0.0.1", Validity::Always, &["h2"])
                    .map_err(io::Error::other)?,
            ),
        };
        Scripted::serve((Ipv4Addr::LOCALHOST, 0).into(), tls, script).await
    }

    /// The URL of that server.
    #[must_use]
    pub fn url(&self, server: &Scripted) -> String {
        match self.over {
            Over::Clear => format!("http://127.0.0.1:{}/", server.port()),
            Over::NoTls | Over::Http2 => format!("https://127.0.0.1:{}/", server.port()),
        }
    }
}

/// All known hostile behaviours.
#[must_use]
pub fn catalogue() -> Vec<Hostility> {
    [heads(), bodies(), resets(), silences(), http2()].concat()
}

fn on(over: Over, greets: bool, name: &'static str, ends: Ends, steps: Vec<Step>) -> Hostility {
    Hostility { name, ends, over, greets, steps }
}

fn answers(name: &'static str, ends: Ends, steps: Vec<Step>) -> Hostility {
    on(Over::Clear, false, name, ends, steps)
}

fn greets(name: &'static str, ends: Ends, steps: Vec<Step>) -> Hostility {
    on(Over::Clear, true, name, ends, steps)
}

fn write(bytes: impl AsRef<[u8]>) -> Step {
    Step::Write(bytes.as_ref().to_vec())
}

fn flood(bytes: impl AsRef<[u8]>) -> Step {
    Step::Flood(bytes.as_ref().to_vec())
}

/// A response head with this header line, followed by these steps.
fn head(header: &str, steps: &[Step]) -> Vec<Step> {
    [&[write(format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n"))], steps].concat()
}

fn chunked(steps: &[Step]) -> Vec<Step> {
    head("transfer-encoding: chunked", steps)
}

fn heads() -> Vec<Hostility> {
    let many = |count: usize, length: usize| -> String {
        (0..count).map(|number| format!("x-{number}: {}\r\n", "a".repeat(length))).collect()
    };
    let whole = |headers: &str| {
        vec![write(format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n"))]
    };
    let status_line = || write("HTTP/1.1 200 OK\r\n");
    vec![
        answers(
            "endless header lines",
            Ends::Broken,
            vec![status_line(), flood("x-more: and more\r\n")],
        ),
        answers(
            "an endless header",
            Ends::Broken,
            vec![write("HTTP/1.1 200 OK\r\nx-long: "), flood([b'a'; 4_096])],
        ),
        answers("an endless header name", Ends::Broken, vec![status_line(), flood([b'a'; 4_096])]),
        answers(
            "an endless status line",
            Ends::Broken,
            vec![write("HTTP/1.1 200 "), flood([b'a'; 4_096])],
        ),
        answers("endless empty lines", Ends::Somehow, vec![flood("\r\n")]),
        answers(
            "an endless number of 1xx",
            Ends::TimedOut,
            vec![flood("HTTP/1.1 100 Continue\r\n\r\n")],
        ),
        answers(
            "endless early hints",
            Ends::TimedOut,
            vec![flood("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")],
        ),
        answers(
            "a switch of protocols",
            Ends::Somehow,
            vec![
                write(
                    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
                ),
                flood([0; 4_096]),
            ],
        ),
        answers("64 KiB in one header", Ends::Answered(200), whole(&many(1, 65_536))),
        answers("64 KiB in 64 headers", Ends::Answered(200), whole(&many(64, 1_024))),
        answers("64 KiB in 1,024 headers", Ends::Broken, whole(&many(1_024, 56))),
        answers("half a MiB in one header", Ends::Broken, whole(&many(1, 524_288))),
        answers(
            "slow bytes in the head",
            Ends::TimedOut,
            vec![write("HTTP/1.1 200 OK\r\nx-drip: "), Step::Drip(b'x')],
        ),
        answers("another protocol", Ends::Broken, vec![flood("SSH-2.0-OpenSSH_9.9\r\n")]),
        answers(
            "a redirect to the metadata address",
            Ends::Answered(302),
            vec![answer(
                "302 Found",
                &[("location", "http://169.254.169.254/latest/meta-data/")],
                b"",
            )],
        ),
    ]
}

fn bodies() -> Vec<Hostility> {
    let chunk = [b"400\r\n".as_slice(), &[b'x'; 1_024], b"\r\n"].concat();
    let gzip = "content-encoding: gzip\r\ntransfer-encoding: chunked";
    let bomb = [format!("{:x}\r\n", BOMB.len()).as_bytes(), BOMB, b"\r\n"].concat();
    let chunks = |steps: &[Step]| chunked(steps);
    vec![
        answers("an endless chunked body", Ends::Answered(200), chunks(&[Step::Flood(chunk)])),
        answers(
            "an endless body of tiny chunks",
            Ends::Answered(200),
            chunks(&[flood("1\r\nx\r\n")]),
        ),
        answers("an endless body", Ends::Answered(200), head("x-none: 0", &[flood([b'x'; 4_096])])),
        answers(
            "the longest body there can be",
            Ends::Answered(200),
            head("content-length: 18446744073709551613", &[flood([b'x'; 4_096])]),
        ),
        answers(
            "a longer body than there can be",
            Ends::Broken,
            head("content-length: 99999999999999999999", &[]),
        ),
        answers("two lengths", Ends::Broken, head("content-length: 1\r\ncontent-length: 2", &[])),
        answers(
            "the longest chunk there can be",
            Ends::Answered(200),
            chunks(&[write("fffffffffffffff0\r\n"), flood([b'x'; 4_096])]),
        ),
        answers(
            "a longer chunk than there can be",
            Ends::Broken,
            chunks(&[write("fffffffffffffffff\r\n")]),
        ),
        answers("a negative chunk", Ends::Broken, chunks(&[write("-1\r\n")])),
        answers("an endless chunk size", Ends::TimedOut, chunks(&[flood("0")])),
        answers(
            "an endless chunk extension",
            Ends::Broken,
            chunks(&[write("1;"), flood([b'a'; 4_096])]),
        ),
        answers(
            "endless trailers",
            Ends::Broken,
            chunks(&[write("0\r\n"), flood("x-more: and more\r\n")]),
        ),
        answers(
            "slow bytes in the body",
            Ends::TimedOut,
            head("content-length: 60000", &[Step::Drip(b'x')]),
        ),
        answers("slow chunks", Ends::TimedOut, chunks(&[write("ffff\r\n"), Step::Drip(b'x')])),
        answers(
            "a gzip bomb",
            Ends::Answered(200),
            vec![answer("200 OK", &[("content-encoding", "gzip")], BOMB)],
        ),
        answers("gzip bombs without end", Ends::Answered(200), head(gzip, &[Step::Flood(bomb)])),
    ]
}

fn resets() -> Vec<Hostility> {
    let broken =
        |name, steps: Vec<Step>| answers(name, Ends::Broken, [steps, vec![Step::Reset]].concat());
    vec![
        greets("a reset before anything is read", Ends::Broken, vec![Step::Reset]),
        greets("a reset within the request", Ends::Broken, vec![Step::Read(10), Step::Reset]),
        greets("an end before anything is read", Ends::Broken, vec![Step::Close]),
        broken("a reset after the request", vec![]),
        broken("a reset after the status line", vec![write("HTTP/1.1 200 OK\r\n")]),
        broken("a reset within a header", vec![write("HTTP/1.1 200 OK\r\nx-hal")]),
        broken("a reset within a 1xx", vec![write("HTTP/1.1 100 Continue\r\n")]),
        broken("a reset after the head", head("content-length: 9", &[])),
        broken("a reset within the body", head("content-length: 9", &[write("half")])),
        broken("a reset within a chunk size", chunked(&[write("4")])),
        broken("a reset within a chunk", chunked(&[write("4\r\nha")])),
        broken("a reset before the last chunk", chunked(&[write("4\r\nhalf\r\n")])),
        on(Over::NoTls, true, "a reset before the handshake", Ends::Broken, vec![Step::Reset]),
        on(
            Over::NoTls,
            true,
            "a reset within the handshake",
            Ends::Broken,
            vec![Step::Read(10), Step::Reset],
        ),
    ]
}

fn silences() -> Vec<Hostility> {
    let hello = [0x16, 3, 3, 0x40, 0];
    let tls = |name, ends, steps: Vec<Step>| on(Over::NoTls, true, name, ends, steps);
    vec![
        greets("a connection that is never read", Ends::TimedOut, vec![Step::Silence]),
        greets(
            "a connection of which little is read",
            Ends::TimedOut,
            vec![Step::Read(100), Step::Silence],
        ),
        greets(
            "an answer before the question",
            Ends::Somehow,
            vec![answer("200 OK", &[], b""), Step::Silence],
        ),
        answers("silence", Ends::TimedOut, vec![Step::Silence]),
        answers("silence in the head", Ends::TimedOut, vec![write("HTTP/1.1 200"), Step::Silence]),
        answers(
            "silence in the body",
            Ends::TimedOut,
            head("content-length: 9", &[write("half"), Step::Silence]),
        ),
        tls("a handshake that stalls before it began", Ends::TimedOut, vec![Step::Silence]),
        tls(
            "a handshake that stalls",
            Ends::TimedOut,
            vec![Step::Read(10), write(hello), Step::Silence],
        ),
        tls(
            "a handshake of slow bytes",
            Ends::TimedOut,
            vec![Step::Read(10), write(hello), Step::Drip(0)],
        ),
        tls(
            "a handshake that never ends",
            Ends::Broken,
            vec![Step::Read(10), flood([&hello[..], &[2; 16_384]].concat())],
        ),
        tls(
            "plain text where TLS is expected",
            Ends::Broken,
            vec![flood("HTTP/1.1 400 Bad Request\r\n\r\n")],
        ),
    ]
}

/// The client's preface and SETTINGS frame; the HEADERS frame of the request follows them.
const PREFACE_BYTES: usize = 80;

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: Frame, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind as u8, flags, 0, 0, 0, stream], payload].concat()
}

#[derive(Clone, Copy)]
enum Frame {
    Data = 0,
    Headers = 1,
    Settings = 4,
    Ping = 6,
    Continuation = 9,
}

/// Behaviours of an HTTP/2 server after it has read the start of a request.
fn http2() -> Vec<Hostility> {
    const END_HEADERS: u8 = 4;
    let ok = frame(Frame::Headers, END_HEADERS, 1, &[0x88]);
    let informational = frame(Frame::Headers, END_HEADERS, 1, b"\x08\x03103");
    // A literal header field without indexing: name `x`, 15 KiB of value.
    let long = [&[0, 1, b'x', 0x7f, 0x81, 0x77][..], &[b'a'; 15_360]].concat();
    // An indexed header field of 4,000 bytes, then 12,000 references to its index.
    let expanding =
        [&[0x88, 0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'a'; 4_000], &[0xbe; 12_000]].concat();
    let does = |name, ends, steps: &[Step]| {
        let first = [Step::Read(PREFACE_BYTES), write(frame(Frame::Settings, 0, 0, &[]))];
        on(Over::Http2, true, name, ends, [&first, steps].concat())
    };
    vec![
        does("silence over HTTP/2", Ends::TimedOut, &[Step::Silence]),
        does("silence in the body over HTTP/2", Ends::TimedOut, &[write(&ok), Step::Silence]),
        does("a reset over HTTP/2", Ends::Broken, &[write(&ok), Step::Reset]),
        does(
            "an endless body that minds no window",
            Ends::Somehow,
            &[write(&ok), Step::Flood(frame(Frame::Data, 0, 1, &[b'x'; 16_384]))],
        ),
        does(
            "an endless body of empty frames",
            Ends::Somehow,
            &[write(&ok), Step::Flood(frame(Frame::Data, 0, 1, &[]))],
        ),
        does(
            "an endless head over HTTP/2",
            Ends::Broken,
            &[
                write(frame(Frame::Headers, 0, 1, &[0x88])),
                Step::Flood(frame(Frame::Continuation, 0, 1, &long)),
            ],
        ),
        does(
            "a head that expands",
            Ends::Broken,
            &[write(frame(Frame::Headers, END_HEADERS, 1, &expanding))],
        ),
        does("endless early hints over HTTP/2", Ends::Somehow, &[Step::Flood(informational)]),
        does("endless pings", Ends::TimedOut, &[Step::Flood(frame(Frame::Ping, 0, 0, &[0; 8]))]),
        does("endless settings", Ends::Somehow, &[Step::Flood(frame(Frame::Settings, 0, 0, &[]))]),
    ]
}

//! A catalogue of hostile destinations, shared by the contract tests of the sender and the test of
//! its memory use.

mod http2;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::certificates::{Authority, Validity};
use crate::scripted::{Script, Scripted, Step, answer};

/// 16 MiB of zeros, compressed to 16 KiB.
pub const BOMB: &[u8] = include_bytes!("../../fixtures/hostile/16-mib-of-nothing.gz");

/// A behaviour of a hostile destination, and the end that an exchange with it should have.
#[derive(Debug, Clone)]
pub struct HostileBehaviour {
    /// A description of the behaviour.
    pub name: &'static str,
    /// The expected end of the exchange.
    pub expected: ExpectedEnd,
    transport: Transport,
    on_connect: bool,
    steps: Vec<Step>,
}

/// The expected end of an exchange with a hostile destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedEnd {
    /// With a response of this status. The rest of the body is not read.
    Answered(u16),
    /// With a timeout.
    TimedOut,
    /// With a broken connection.
    Broken,
    /// In any of these ways, because the end depends on a race.
    Unspecified,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// TCP with HTTP/1.
    PlainTcp,
    /// TCP without TLS, although the client expects TLS.
    MissingTls,
    /// HTTP/1 over TLS.
    Http1Tls,
    /// HTTP/2 over TLS.
    Http2,
}

impl HostileBehaviour {
    /// Starts a server with this behaviour. The authority issues its certificate if it needs one.
    ///
    /// # Errors
    /// If the machine has no free port, or no key can be generated.
    pub async fn serve(&self, authority: &Authority) -> io::Result<Scripted> {
        let steps = self.steps.clone();
        let script = if self.on_connect {
            Script::OnConnect(steps)
        } else {
            Script::Answers(Arc::new(move |_| steps.clone()))
        };
        let tls = |protocol| {
            let config = authority.server("127.0.0.1", Validity::Always, &[protocol]);
            config.map(Some).map_err(io::Error::other)
        };
        let tls = match self.transport {
            Transport::PlainTcp | Transport::MissingTls => None,
            Transport::Http1Tls => tls("http/1.1")?,
            Transport::Http2 => tls("h2")?,
        };
        Scripted::serve((Ipv4Addr::LOCALHOST, 0).into(), tls, script).await
    }

    /// The URL of the server.
    #[must_use]
    pub fn url(&self, server: &Scripted) -> String {
        match self.transport {
            Transport::PlainTcp => format!("http://127.0.0.1:{}/", server.port()),
            Transport::MissingTls | Transport::Http1Tls | Transport::Http2 => {
                format!("https://127.0.0.1:{}/", server.port())
            }
        }
    }
}

/// All known hostile behaviours except those of [`slow_senders`].
#[must_use]
pub fn catalogue() -> Vec<HostileBehaviour> {
    let others = [heads(), bodies(), chunked_bodies(), resets(), silences(), http2::http2()];
    [others.concat(), floods(), floods_after_an_answer()].concat()
}

/// Behaviours that send data instead of a response for as long as the client keeps the connection
/// open.
#[must_use]
pub fn floods() -> Vec<HostileBehaviour> {
    let http1 = |transport, name, link: usize| {
        let hint = format!("HTTP/1.1 103 Early Hints\r\nlink: </{}>\r\n\r\n", "a".repeat(link));
        let hints = vec![Step::FloodAndDiscard(hint.into())];
        behaviour(transport, false, name, ExpectedEnd::Broken, hints)
    };
    let http1 = vec![
        http1(Transport::PlainTcp, "endless early hints", 1),
        http1(Transport::PlainTcp, "endless early hints of 8 KiB", 8_192),
        http1(Transport::Http1Tls, "endless early hints over TLS", 1),
        http1(Transport::Http1Tls, "endless early hints of 8 KiB over TLS", 8_192),
        behaviour(
            Transport::PlainTcp,
            false,
            "an endless header, byte by byte",
            ExpectedEnd::Broken,
            vec![write("HTTP/1.1 200 OK\r\nx-long: "), Step::FloodAndDiscard(vec![b'a'])],
        ),
    ];
    [http1, http2::floods()].concat()
}

/// Servers that send a little data continuously, over TLS, until the exchange times out and beyond.
#[must_use]
pub fn slow_senders() -> Vec<HostileBehaviour> {
    let steps = vec![write("HTTP/1.1 200 OK\r\nx-drip: "), Step::Drip(b'x')];
    let name = "a header that drips over TLS";
    let drip = behaviour(Transport::Http1Tls, false, name, ExpectedEnd::TimedOut, steps);
    vec![drip, http2::slow_flood()]
}

/// Floods after a response, on an idle connection.
#[must_use]
pub fn floods_after_an_answer() -> Vec<HostileBehaviour> {
    http2::floods_after_an_answer()
}

fn behaviour(
    transport: Transport,
    on_connect: bool,
    name: &'static str,
    expected: ExpectedEnd,
    steps: Vec<Step>,
) -> HostileBehaviour {
    HostileBehaviour { name, expected, transport, on_connect, steps }
}

fn on_request(name: &'static str, expected: ExpectedEnd, steps: Vec<Step>) -> HostileBehaviour {
    behaviour(Transport::PlainTcp, false, name, expected, steps)
}

fn on_connect(name: &'static str, expected: ExpectedEnd, steps: Vec<Step>) -> HostileBehaviour {
    behaviour(Transport::PlainTcp, true, name, expected, steps)
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

fn heads() -> Vec<HostileBehaviour> {
    let many = |count: usize, length: usize| -> String {
        (0..count).map(|number| format!("x-{number}: {}\r\n", "a".repeat(length))).collect()
    };
    let whole = |headers: &str| {
        vec![write(format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n"))]
    };
    let status_line = || write("HTTP/1.1 200 OK\r\n");
    vec![
        on_request(
            "endless header lines",
            ExpectedEnd::Broken,
            vec![status_line(), flood("x-more: and more\r\n")],
        ),
        on_request(
            "an endless header",
            ExpectedEnd::Broken,
            vec![write("HTTP/1.1 200 OK\r\nx-long: "), flood([b'a'; 4_096])],
        ),
        on_request(
            "an endless header name",
            ExpectedEnd::Broken,
            vec![status_line(), flood([b'a'; 4_096])],
        ),
        on_request(
            "an endless status line",
            ExpectedEnd::Broken,
            vec![write("HTTP/1.1 200 "), flood([b'a'; 4_096])],
        ),
        on_request("endless empty lines", ExpectedEnd::Unspecified, vec![flood("\r\n")]),
        on_request(
            "an endless number of 1xx",
            ExpectedEnd::Broken,
            vec![flood("HTTP/1.1 100 Continue\r\n\r\n")],
        ),
        on_request(
            "a switch of protocols",
            ExpectedEnd::Unspecified,
            vec![
                write(
                    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
                ),
                flood([0; 4_096]),
            ],
        ),
        on_request("64 KiB in one header", ExpectedEnd::Answered(200), whole(&many(1, 65_536))),
        on_request("64 KiB in 64 headers", ExpectedEnd::Answered(200), whole(&many(64, 1_024))),
        on_request("64 KiB in 1,024 headers", ExpectedEnd::Broken, whole(&many(1_024, 56))),
        on_request("half a MiB in one header", ExpectedEnd::Broken, whole(&many(1, 524_288))),
        on_request(
            "slow bytes in the head",
            ExpectedEnd::TimedOut,
            vec![write("HTTP/1.1 200 OK\r\nx-drip: "), Step::Drip(b'x')],
        ),
        on_request("another protocol", ExpectedEnd::Broken, vec![flood("SSH-2.0-OpenSSH_9.9\r\n")]),
        on_request(
            "a redirect to the metadata address",
            ExpectedEnd::Answered(302),
            vec![answer(
                "302 Found",
                &[("location", "http://169.254.169.254/latest/meta-data/")],
                b"",
            )],
        ),
    ]
}

fn bodies() -> Vec<HostileBehaviour> {
    let gzip = "content-encoding: gzip\r\ntransfer-encoding: chunked";
    let bomb = [format!("{:x}\r\n", BOMB.len()).as_bytes(), BOMB, b"\r\n"].concat();
    vec![
        on_request(
            "an endless body",
            ExpectedEnd::Answered(200),
            head("x-none: 0", &[flood([b'x'; 4_096])]),
        ),
        on_request(
            "the longest body there can be",
            ExpectedEnd::Answered(200),
            head("content-length: 18446744073709551613", &[flood([b'x'; 4_096])]),
        ),
        on_request(
            "a longer body than there can be",
            ExpectedEnd::Broken,
            head("content-length: 99999999999999999999", &[]),
        ),
        on_request(
            "two lengths",
            ExpectedEnd::Broken,
            head("content-length: 1\r\ncontent-length: 2", &[]),
        ),
        on_request(
            "slow bytes in the body",
            ExpectedEnd::Answered(200),
            head("content-length: 60000", &[Step::Drip(b'x')]),
        ),
        on_request(
            "a gzip bomb",
            ExpectedEnd::Answered(200),
            vec![answer("200 OK", &[("content-encoding", "gzip")], BOMB)],
        ),
        on_request(
            "gzip bombs without end",
            ExpectedEnd::Answered(200),
            head(gzip, &[Step::Flood(bomb)]),
        ),
    ]
}

fn chunked_bodies() -> Vec<HostileBehaviour> {
    let chunk = [b"400\r\n".as_slice(), &[b'x'; 1_024], b"\r\n"].concat();
    vec![
        on_request(
            "an endless chunked body",
            ExpectedEnd::Answered(200),
            chunked(&[Step::Flood(chunk)]),
        ),
        on_request(
            "an endless body of tiny chunks",
            ExpectedEnd::Answered(200),
            chunked(&[flood("1\r\nx\r\n")]),
        ),
        on_request(
            "the longest chunk there can be",
            ExpectedEnd::Answered(200),
            chunked(&[write("fffffffffffffff0\r\n"), flood([b'x'; 4_096])]),
        ),
        on_request(
            "a longer chunk than there can be",
            ExpectedEnd::Answered(200),
            chunked(&[write("fffffffffffffffff\r\n")]),
        ),
        on_request("a negative chunk", ExpectedEnd::Answered(200), chunked(&[write("-1\r\n")])),
        on_request("an endless chunk size", ExpectedEnd::Answered(200), chunked(&[flood("0")])),
        on_request(
            "an endless chunk extension",
            ExpectedEnd::Answered(200),
            chunked(&[write("1;"), flood([b'a'; 4_096])]),
        ),
        on_request(
            "endless trailers",
            ExpectedEnd::Answered(200),
            chunked(&[write("0\r\n"), flood("x-more: and more\r\n")]),
        ),
        on_request(
            "slow chunks",
            ExpectedEnd::Answered(200),
            chunked(&[write("ffff\r\n"), Step::Drip(b'x')]),
        ),
    ]
}

fn resets() -> Vec<HostileBehaviour> {
    let reset = |name, expected, steps: Vec<Step>| {
        on_request(name, expected, [steps, vec![Step::Reset]].concat())
    };
    let broken = |name, steps| reset(name, ExpectedEnd::Broken, steps);
    // The complete head decides the result.
    let answered = |name, steps| reset(name, ExpectedEnd::Answered(200), steps);
    vec![
        on_connect("a reset before anything is read", ExpectedEnd::Broken, vec![Step::Reset]),
        on_connect(
            "a reset within the request",
            ExpectedEnd::Broken,
            vec![Step::Read(10), Step::Reset],
        ),
        on_connect("an end before anything is read", ExpectedEnd::Broken, vec![Step::Close]),
        broken("a reset after the request", vec![]),
        broken("a reset after the status line", vec![write("HTTP/1.1 200 OK\r\n")]),
        broken("a reset within a header", vec![write("HTTP/1.1 200 OK\r\nx-hal")]),
        broken("a reset within a 1xx", vec![write("HTTP/1.1 100 Continue\r\n")]),
        answered("a reset after the head", head("content-length: 9", &[])),
        answered("a reset within the body", head("content-length: 9", &[write("half")])),
        answered("a reset within a chunk size", chunked(&[write("4")])),
        answered("a reset within a chunk", chunked(&[write("4\r\nha")])),
        answered("a reset before the last chunk", chunked(&[write("4\r\nhalf\r\n")])),
        behaviour(
            Transport::MissingTls,
            true,
            "a reset before the handshake",
            ExpectedEnd::Broken,
            vec![Step::Reset],
        ),
        behaviour(
            Transport::MissingTls,
            true,
            "a reset within the handshake",
            ExpectedEnd::Broken,
            vec![Step::Read(10), Step::Reset],
        ),
    ]
}

fn silences() -> Vec<HostileBehaviour> {
    let hello = [0x16, 3, 3, 0x40, 0];
    let tls = |name, expected, steps: Vec<Step>| {
        behaviour(Transport::MissingTls, true, name, expected, steps)
    };
    vec![
        on_connect("a connection that is never read", ExpectedEnd::TimedOut, vec![Step::Silence]),
        on_connect(
            "a connection of which little is read",
            ExpectedEnd::TimedOut,
            vec![Step::Read(100), Step::Silence],
        ),
        on_connect(
            "an answer before the question",
            ExpectedEnd::Unspecified,
            vec![answer("200 OK", &[], b""), Step::Silence],
        ),
        on_request("silence", ExpectedEnd::TimedOut, vec![Step::Silence]),
        on_request(
            "silence in the head",
            ExpectedEnd::TimedOut,
            vec![write("HTTP/1.1 200"), Step::Silence],
        ),
        on_request(
            "silence in the body",
            ExpectedEnd::Answered(200),
            head("content-length: 9", &[write("half"), Step::Silence]),
        ),
        tls("a handshake that stalls before it began", ExpectedEnd::TimedOut, vec![Step::Silence]),
        tls(
            "a handshake that stalls",
            ExpectedEnd::TimedOut,
            vec![Step::Read(10), write(hello), Step::Silence],
        ),
        tls(
            "a handshake of slow bytes",
            ExpectedEnd::TimedOut,
            vec![Step::Read(10), write(hello), Step::Drip(0)],
        ),
        tls(
            "a handshake that never ends",
            ExpectedEnd::Broken,
            vec![Step::Read(10), flood([&hello[..], &[2; 16_384]].concat())],
        ),
        tls(
            "plain text where TLS is expected",
            ExpectedEnd::Broken,
            vec![flood("HTTP/1.1 400 Bad Request\r\n\r\n")],
        ),
    ]
}

//! Hostile HTTP/2 servers, frame by frame.

use std::time::Duration;

use super::{ExpectedEnd, HostileBehaviour, Transport, behaviour, write};
use crate::scripted::Step;

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
    WindowUpdate = 8,
    Continuation = 9,
    /// A frame type of no protocol version. Clients must ignore it (RFC 9113, section 5.5).
    Unknown = 0xbe,
}

const END_HEADERS: u8 = 4;

/// Behaviours of an HTTP/2 server after it has read the start of a request.
pub(super) fn http2() -> Vec<HostileBehaviour> {
    let ok = frame(Frame::Headers, END_HEADERS, 1, &[0x88]);
    // A literal header field without indexing: name `x`, 15 KiB of value.
    let long = [&[0, 1, b'x', 0x7f, 0x81, 0x77][..], &[b'a'; 15_360]].concat();
    // An indexed header field of 4,000 bytes, then 12,000 references to its index.
    let expanding =
        [&[0x88, 0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'a'; 4_000], &[0xbe; 12_000]].concat();
    vec![
        does("silence over HTTP/2", ExpectedEnd::TimedOut, &[Step::Silence]),
        does(
            "silence in the body over HTTP/2",
            ExpectedEnd::Answered(200),
            &[write(&ok), Step::Silence],
        ),
        does("a reset over HTTP/2", ExpectedEnd::Unspecified, &[write(&ok), Step::Reset]),
        does(
            "an endless body that minds no window",
            ExpectedEnd::Unspecified,
            &[write(&ok), Step::Flood(frame(Frame::Data, 0, 1, &[b'x'; 16_384]))],
        ),
        does(
            "an endless body of empty frames",
            ExpectedEnd::Unspecified,
            &[write(&ok), Step::Flood(frame(Frame::Data, 0, 1, &[]))],
        ),
        does(
            "an endless head over HTTP/2",
            ExpectedEnd::Broken,
            &[
                write(frame(Frame::Headers, 0, 1, &[0x88])),
                Step::Flood(frame(Frame::Continuation, 0, 1, &long)),
            ],
        ),
        does(
            "a head that expands",
            ExpectedEnd::Broken,
            &[write(frame(Frame::Headers, END_HEADERS, 1, &expanding))],
        ),
        does("endless early hints over HTTP/2", ExpectedEnd::Broken, &[Step::Flood(early_hints())]),
        does(
            "endless pings of which no answer is read",
            ExpectedEnd::Unspecified,
            &[Step::Flood(ping())],
        ),
        does(
            "endless settings of which no answer is read",
            ExpectedEnd::Unspecified,
            &[Step::Flood(frame(Frame::Settings, 0, 0, &[]))],
        ),
    ]
}

/// Endless frames that the protocol allows, in place of a response.
pub(super) fn floods() -> Vec<HostileBehaviour> {
    let flood = |name, frame: Vec<u8>| does(name, ExpectedEnd::Broken, &[many(&frame)]);
    vec![
        flood("endless pings", ping()),
        flood("endless settings", frame(Frame::Settings, 0, 0, &[])),
        // Each update adds one byte, so the window never exceeds the limit of the protocol.
        flood("endless window updates", frame(Frame::WindowUpdate, 0, 0, &[0, 0, 0, 1])),
        flood("endless unknown frames", unknown()),
        flood("endless informational heads over HTTP/2", early_hints()),
    ]
}

/// Allowed frames until the exchange times out. They are too slow for the client to end the
/// exchange earlier.
pub(super) fn slow_flood() -> HostileBehaviour {
    let each = [write(ping()), Step::Pause(Duration::from_millis(20))];
    let pings: Vec<Step> = each.iter().cloned().cycle().take(2 * 5_000).collect();
    does("pings, less than fifty a second", ExpectedEnd::TimedOut, &pings)
}

/// Floods after a response. The client replies to pings, but not to unknown frames.
pub(super) fn floods_after_an_answer() -> Vec<HostileBehaviour> {
    const END_STREAM_END_HEADERS: u8 = 5;
    let whole = frame(Frame::Headers, END_STREAM_END_HEADERS, 1, &[0x88]);
    let flood = |name, frame: Vec<u8>| {
        does(name, ExpectedEnd::Answered(200), &[write(&whole), many(&frame)])
    };
    vec![
        flood("an answer, then endless pings", ping()),
        flood("an answer, then endless unknown frames", unknown()),
    ]
}

fn early_hints() -> Vec<u8> {
    frame(Frame::Headers, END_HEADERS, 1, b"\x08\x03103")
}

fn ping() -> Vec<u8> {
    frame(Frame::Ping, 0, 0, &[0; 8])
}

fn unknown() -> Vec<u8> {
    frame(Frame::Unknown, 0, 0, &[0; 8])
}

/// A flood of a frame. Each write has few frames, so that the server is not much faster than a
/// client without optimization.
fn many(frame: &[u8]) -> Step {
    Step::FloodAndDiscard(frame.repeat(16))
}

fn does(name: &'static str, expected: ExpectedEnd, steps: &[Step]) -> HostileBehaviour {
    let first = [Step::Read(PREFACE_BYTES), write(frame(Frame::Settings, 0, 0, &[]))];
    behaviour(Transport::Http2, true, name, expected, [&first, steps].concat())
}

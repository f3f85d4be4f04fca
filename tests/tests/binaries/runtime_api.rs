//! A Lambda Runtime API that returns the invocations of a test one after the other, and keeps the
//! responses. <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>

use std::collections::VecDeque;
use std::sync::Mutex;

use adapters::machine::Machine;
use delivery::ports::Clock as _;
use lastmile_tests::scripted::{Scripted, ScriptedRequest, Step, answer};
use serde_json::Value;

const NEXT: &str = "GET /2018-06-01/runtime/invocation/next ";
const REGISTER: &str = "POST /2020-01-01/extension/register ";
const NEXT_EVENT: &str = "GET /2020-01-01/extension/event/next ";

/// An invocation, and the clock at its start.
pub(crate) struct Invocation {
    pub(crate) event: Value,
    /// The time until the deadline, from the start of the invocation.
    pub(crate) deadline_in_ms: u64,
    /// The lead of this machine's clock, which the function uses, over Lambda's clock.
    pub(crate) clock_is_ahead_ms: i64,
}

/// The Runtime API of one process.
pub(crate) struct RuntimeApi(Scripted);

impl RuntimeApi {
    pub(crate) async fn start(invocations: Vec<Invocation>) -> Self {
        let waiting = Mutex::new(VecDeque::from(invocations));
        let script = move |request: &ScriptedRequest| {
            if request.head.starts_with(REGISTER) {
                return vec![answer("200 OK", &[("lambda-extension-identifier", "it")], b"{}")];
            }
            if request.head.starts_with(NEXT_EVENT) {
                return vec![Step::Silence];
            }
            if !request.head.starts_with(NEXT) {
                return vec![answer("202 Accepted", &[], b"")];
            }
            let next = waiting.lock().expect("no panic").pop_front();
            vec![next.map_or(Step::Silence, |invocation| handed_out(&invocation))]
        };
        Self(Scripted::start(script).await.expect("a free port"))
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.0.port())
    }

    /// Returns true if the process has requested an invocation.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.requests().iter().any(|request| request.head.starts_with(NEXT))
    }

    /// Returns true if the process waits for the event that ends it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.0.requests().iter().any(|request| request.head.starts_with(NEXT_EVENT))
    }

    /// Returns the response of the invocation, once there is one.
    pub(crate) fn response(&self) -> Option<Value> {
        let requests = self.0.requests();
        let is_posted = |head: &str| head.starts_with("POST ") && !head.starts_with(REGISTER);
        let posted = requests.iter().find(|request| is_posted(&request.head))?;
        let path = posted.head.split(' ').nth(1).unwrap_or_default();
        let text = String::from_utf8_lossy(&posted.body);
        assert!(path.ends_with("/response"), "{path}: {text}");
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }
}

fn handed_out(invocation: &Invocation) -> Step {
    let lambda_ms = Machine.now_ms().saturating_add_signed(-invocation.clock_is_ahead_ms);
    let deadline_ms = (lambda_ms + invocation.deadline_in_ms).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd"),
        ("lambda-runtime-deadline-ms", &deadline_ms),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:tested",
        ),
        ("lambda-runtime-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793"),
    ];
    answer("200 OK", &headers, invocation.event.to_string().as_bytes())
}

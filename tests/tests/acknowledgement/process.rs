//! A process of dispatch: it handles one invocation after the other, and remembers what it learns.

use adapters::telemetry::Telemetry;
use delivery::ports::{Clock as _, Message, QueueName, Record};
use dispatch::{Deadline, Dispatch};
use lastmile_tests::fake_ports::FakePorts;

use crate::examples::container;

/// The time of an invocation, unless a test sets another.
const LASTS_MS: u64 = 120_000;

pub(crate) struct Process {
    pub(crate) ports: FakePorts,
    pub(crate) dispatch: Dispatch<FakePorts>,
}

impl Process {
    pub(crate) fn new(ports: FakePorts) -> Self {
        Self { dispatch: Dispatch::new(ports.clone(), container(), None), ports }
    }

    /// A process that is one of this many functions that may run at once.
    pub(crate) fn one_of(functions: u32, ports: FakePorts) -> Self {
        let process = Self::new(ports);
        Self { dispatch: process.dispatch.with_max_concurrency(functions), ..process }
    }

    /// Adds metrics to the process.
    pub(crate) fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self { dispatch: self.dispatch.with_telemetry(telemetry), ..self }
    }

    /// Runs an invocation that acknowledges each of its records. Returns the messages that it sent.
    pub(crate) fn invoke(&self, records: &[Record]) -> Vec<(QueueName, Message)> {
        self.invoke_for(LASTS_MS, records)
    }

    /// Like `invoke`, with this much time.
    pub(crate) fn invoke_for(
        &self,
        lasts_ms: u64,
        records: &[Record],
    ) -> Vec<(QueueName, Message)> {
        let before = self.ports.sent().len();
        assert_eq!(self.handle_for(lasts_ms, records), [""; 0]);
        self.ports.sent_after(before)
    }

    /// Like `invoke`. Also returns the duration of the invocation.
    pub(crate) fn timed_invoke(&self, records: &[Record]) -> (Vec<(QueueName, Message)>, u64) {
        let began_ms = self.ports.now_ms();
        (self.invoke(records), self.ports.now_ms() - began_ms)
    }

    /// Runs an invocation. Returns the records that go back to their queue.
    pub(crate) fn handle(&self, records: &[Record]) -> Vec<String> {
        self.handle_for(LASTS_MS, records)
    }

    fn handle_for(&self, lasts_ms: u64, records: &[Record]) -> Vec<String> {
        let now_ms = self.ports.now_ms();
        let deadline = Deadline::new(now_ms, now_ms + lasts_ms);
        self.ports.run(self.dispatch.handle(records, &deadline))
    }
}

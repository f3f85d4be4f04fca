//! The processes of the functions. Each has its own memory and clock, and one invocation at a time.

use std::sync::Arc;

use deadletter::DeadLetters;
use dispatch::Dispatch;

use super::faults::Fault;
use super::limits::Limits;
use super::rules::TOPIC;
use super::storage::DEFAULT_CONTAINER;
use super::world::World;

/// A function in a process.
#[derive(Debug, Clone)]
pub(crate) enum Function {
    Dispatch(Arc<Dispatch<World>>),
    Letters(Arc<DeadLetters<World>>),
}

impl Function {
    fn new(world: &World, stores: bool, limits: &Limits) -> Self {
        let container = DEFAULT_CONTAINER.parse().expect("a container");
        if stores {
            return Self::Letters(Arc::new(DeadLetters::new(world.clone(), container)));
        }
        let topic = TOPIC.parse().expect("a topic");
        let dispatch = Dispatch::new(world.clone(), container, Some(topic));
        Self::Dispatch(Arc::new(dispatch.with_max_concurrency(limits.functions())))
    }

    fn stores(&self) -> bool {
        matches!(self, Self::Letters(_))
    }
}

/// The clock of a process, and the subscriptions that it read last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// Difference between the clock of the process and that of SQS.
    pub(crate) skew_ms: i64,
    /// The version of the subscriptions that the process read last, and the time of the read.
    pub(crate) read: usize,
    pub(crate) read_ms: u64,
}

/// The processes of both functions.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    idle: Vec<(usize, Function)>,
}

impl Processes {
    /// Takes an idle process of a function, or starts a process.
    pub(crate) fn take(&mut self, world: &World, stores: bool) -> (usize, Function) {
        let is_idle = |(_, function): &(usize, Function)| function.stores() == stores;
        let idle = self.idle.iter().position(is_idle);
        world.with(|inner| {
            let limits = inner.limits;
            if !limits.processes {
                // One process runs everything.
                let new = || (inner.processes.len(), Function::new(world, stores, &limits));
                let process = idle.map_or_else(new, |idle| self.idle[idle].clone());
                if idle.is_none() {
                    inner.processes.push(Memory::default());
                    self.idle.push(process.clone());
                }
                return process;
            }
            if let Some(idle) = idle {
                let process = self.idle.swap_remove(idle);
                if !inner.random.percent(limits.restarts) {
                    return process;
                }
                inner.random.count(Fault::Restarted);
            }
            let skew_ms = inner.random.below(2 * limits.skew_ms + 1) as i64 - limits.skew_ms as i64;
            inner.processes.push(Memory { skew_ms, ..Memory::default() });
            (inner.processes.len() - 1, Function::new(world, stores, &limits))
        })
    }

    /// Ends a process and its memory after a crash or a kill. If one process runs everything, the
    /// next invocation starts another.
    pub(crate) fn end(&mut self, number: usize) {
        self.idle.retain(|(process, _)| *process != number);
    }

    /// Marks a process as idle after its invocation.
    pub(crate) fn release(&mut self, world: &World, number: usize, function: Function) {
        if world.with(|inner| inner.limits.processes) {
            self.idle.push((number, function));
        }
    }
}

//! A virtual clock. Nothing really sleeps: when no future can make progress, time jumps to the next
//! time that somebody waits for.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The current time and all pending sleeps. Clones are the same clock.
#[derive(Clone)]
pub(crate) struct Hours(Arc<Mutex<Face>>);

struct Face {
    now_ms: u64,
    waiting: Vec<(u64, Waker)>,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Hours {
    pub(crate) fn since(now_ms: u64) -> Self {
        Self(Arc::new(Mutex::new(Face { now_ms, waiting: Vec::new() })))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.face().now_ms
    }

    pub(crate) fn pass(&self, wait_ms: u64) {
        self.face().now_ms += wait_ms;
    }

    pub(crate) fn sleep(&self, wait_ms: u64) -> Sleep {
        Sleep { hours: self.clone(), until_ms: self.now_ms().saturating_add(wait_ms) }
    }

    /// Polls a future until it completes.
    pub(crate) fn run<T>(&self, scene: impl Future<Output = T>) -> T {
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&flag));
        let mut scene = pin!(scene);
        loop {
            if let Poll::Ready(end) = scene.as_mut().poll(&mut Context::from_waker(&waker)) {
                return end;
            }
            if !flag.0.swap(false, Ordering::Relaxed) {
                self.leap();
            }
        }
    }

    fn leap(&self) {
        let mut face = self.face();
        let next_ms = face
            .waiting
            .iter()
            .map(|(at_ms, _)| *at_ms)
            .min()
            .expect("somebody waits for something");
        face.now_ms = face.now_ms.max(next_ms);
        let due = face.waiting.extract_if(.., |(at_ms, _)| *at_ms <= next_ms);
        due.for_each(|(_, waker)| waker.wake());
    }

    fn face(&self) -> MutexGuard<'_, Face> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sleep by the virtual clock.
pub(crate) struct Sleep {
    hours: Hours,
    until_ms: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut face = self.hours.face();
        if face.now_ms >= self.until_ms {
            return Poll::Ready(());
        }
        face.waiting.push((self.until_ms, context.waker().clone()));
        Poll::Pending
    }
}

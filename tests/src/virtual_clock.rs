//! A virtual clock. Nothing really sleeps: when no future can make progress, time jumps to the next
//! time that somebody waits for.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The current time and all pending sleeps. Clones are the same clock.
#[derive(Debug, Clone)]
pub struct VirtualClock(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now_ms: u64,
    waiting: Vec<(u64, Waker)>,
}

#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl VirtualClock {
    /// A clock with this time.
    #[must_use]
    pub fn starting_at(now_ms: u64) -> Self {
        Self(Arc::new(Mutex::new(State { now_ms, waiting: Vec::new() })))
    }

    /// Milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.state().now_ms
    }

    /// Moves the time on, as if something had taken this long.
    pub fn advance(&self, wait_ms: u64) {
        self.state().now_ms += wait_ms;
    }

    /// Sleeps this long.
    #[must_use]
    pub fn sleep(&self, wait_ms: u64) -> Sleep {
        Sleep { clock: self.clone(), until_ms: self.now_ms().saturating_add(wait_ms) }
    }

    /// Polls a future until it completes.
    ///
    /// # Panics
    /// When the future waits for something else than this clock.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let flag = Arc::new(WakeFlag::default());
        let waker = Waker::from(Arc::clone(&flag));
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            if !flag.0.swap(false, Ordering::Relaxed) {
                self.jump();
            }
        }
    }

    fn jump(&self) {
        let mut state = self.state();
        let next_ms =
            state.waiting.iter().map(|(at_ms, _)| *at_ms).min().expect("a sleep is pending");
        // `advance` may have passed this time already; the clock never goes back.
        state.now_ms = state.now_ms.max(next_ms);
        let due = state.waiting.extract_if(.., |(at_ms, _)| *at_ms <= next_ms);
        due.for_each(|(_, waker)| waker.wake());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sleep by the virtual clock.
#[derive(Debug)]
pub struct Sleep {
    clock: VirtualClock,
    until_ms: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state();
        if state.now_ms >= self.until_ms {
            return Poll::Ready(());
        }
        state.waiting.push((self.until_ms, context.waker().clone()));
        Poll::Pending
    }
}

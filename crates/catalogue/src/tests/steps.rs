//! Runs futures step by step, in an order that a seed decides.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::task::noop_waker;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// More steps than any test needs.
const STEPS_MAX: u64 = 50_000_000;

/// Runs one future to its end.
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    let waker = noop_waker();
    let mut future = std::pin::pin!(future);
    for _ in 0..STEPS_MAX {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
    }
    panic!("it does not end");
}

/// Runs several futures, each time one step of a random one.
pub(super) fn interleave(seed: u64, mut futures: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>) {
    let mut random = StdRng::seed_from_u64(seed);
    let waker = noop_waker();
    for _ in 0..STEPS_MAX {
        if futures.is_empty() {
            return;
        }
        let at = random.random_range(0..futures.len());
        if futures[at].as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            drop(futures.swap_remove(at));
        }
    }
    panic!("they do not end with the seed {seed}");
}

/// Lets others take a step.
pub(super) async fn step() {
    let mut is_second = false;
    std::future::poll_fn(move |context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut is_second, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

//! A night: the real functions store dead letters of thirteen causes, and an operator works on them with `lastmile`.
//!
//! The night lasts a day, because the policies have their defaults, so its time is virtual (`lifetime.rs`). Its destinations are
//! real servers of this machine, which fail in the ways that operators know (`destinations.rs`). What the functions have
//! stored is copied for each test (`container.rs`). Replays run in real time, on the stack of `lastmile dev` (`morning.rs`).
//!
//! Promises tested here:
//!
//! - Each cause has a title that names it.
//! - Each count covers what is still to be done.
//! - Who can write to the container hides no dead letter, and leads no event elsewhere.

#![recursion_limit = "256"] // the futures of the AWS clients nest deeply

mod causes;
mod container;
mod destinations;
mod forged;
mod lifetime;
mod morning;
mod queues;
mod times;

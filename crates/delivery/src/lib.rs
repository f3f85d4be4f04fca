//! Every rule of delivery, and nothing else.
//!
//! An event arrives, an attempt is made or deferred, its result is judged, and the delivery ends,
//! waits or becomes a dead letter. All of that is decided here, over plain values: no I/O, no
//! clock, no randomness, no runtime, no AWS. The current time (`now_ms`, milliseconds since
//! 1970-01-01 UTC), jitter and a destination's answer are arguments. So the same functions run in
//! production, in the simulation and in explanations.
//!
//! The modules, from the lowest up; each imports only those before it:
//!
//! - [`time`]: durations and timestamps. [`waits`]: how long everything waits. [`address`]: which addresses requests may go to; no other
//!   module uses it.
//! - [`event`]: what was published. [`document`]: trees of values with positions, and how fields are declared.
//! - [`template`]: bodies, header values, query values and paths that are made from an event.
//! - [`subscription`]: which events go where, and how hard to try.
//! - [`delivery`](mod@delivery): the state of one event for one subscription, its attempts and its
//!   end.
//! - [`native`]: documents in the native form, read and written. [`deadletter`]: the bytes of a dead
//!   letter, written and read back. [`wire`]: the message attributes that travel with an event
//!   through the queues.
//! - [`topic_object`]: the object that a topic is stored in.
//! - [`request`]: the HTTP request of one attempt.
//! - [`machine`]: decides what a delivery does next.
//! - [`explain`]: the attempts that a delivery would make, and which subscriptions get an event. [`ports`]: the traits
//!   that adapters implement.
//! - [`publish`]: a request over HTTP that publishes events.
//!
//! All arithmetic is in whole milliseconds and saturates.

#![cfg_attr(not(test), deny(clippy::string_slice))] // what others wrote may be cut within a character

/// An enumeration with a word for each variant, as files, logs and dead letters write it.
macro_rules! words {
    (
        $(#[$of_enum:meta])*
        pub enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$of_enum])*
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            /// Every variant, in the order of the documentation.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

#[macro_use]
pub mod document;

pub mod address;
pub mod deadletter;
pub mod delivery;
pub mod event;
pub mod explain;
pub mod machine;
pub mod message;
pub mod native;
pub mod ports;
pub mod publish;
pub mod request;
pub mod shell;
pub mod subscription;
pub mod table;
pub mod template;
pub mod time;
pub mod topic_object;
pub mod waits;
pub mod wire;

//! A local AWS in this process: queues, object storage, and the event source mappings between
//! queues and functions.
//!
//! It is a crate of its own so that code for a developer's machine is never part of a deployed
//! function. It promises that the same AWS clients, and the user's own tools, work against it; it
//! does not implement all of AWS. [`stack::Stack`] is the whole application on it, [`ingress`]
//! publishes over HTTP, [`subscriber`] is a destination for trials, [`guard`] keeps web pages away from
//! all of them, [`http_client`] keeps proxies out, [`watch`] forwards the log lines of the functions, and
//! [`observe`] what they receive and send.

#![cfg_attr(not(test), deny(clippy::string_slice))] // what others wrote may be cut within a character
#![recursion_limit = "256"] // the futures of the AWS clients nest deeply

pub mod aws;
pub mod guard;
pub mod http_client;
pub mod ingress;
pub mod mapping;
pub mod observe;
pub mod stack;
pub mod subscriber;
pub mod watch;

//! A local AWS in this process: queues, object storage, a table, and the event source mappings
//! between queues and functions.
//!
//! Separate so that code for a developer's machine is never part of a deployed function.
//!
//! - [`aws`] is the local AWS, and [`mapping`] invokes functions for its queues. [`stack::Stack`]
//!   runs the whole application on both.
//! - [`ingress`] publishes over HTTP, and [`subscriber`] is a destination for trials.
//! - [`guard`] refuses requests from web pages of other sites, and [`http_client`] bypasses
//!   proxies.
//! - [`watch`] forwards the log lines of the functions, and [`observe`] reports their records and
//!   requests.
//!
//! Promises: the AWS clients of the functions and the user's AWS tools work with the local AWS. It
//! does not implement all of AWS.

#![cfg_attr(not(test), deny(clippy::string_slice))] // a slice of untrusted text may panic
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

//! The subcommands, one file or folder each, with a function `run`. No subcommand imports another
//! subcommand. Modules that several subcommands share come last.

pub(crate) mod apply;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod console;
pub(crate) mod convert;
pub(crate) mod cost;
pub(crate) mod deadletters;
pub(crate) mod demo;
pub(crate) mod destinations;
pub(crate) mod dev;
#[cfg(feature = "aws")]
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod man;
pub(crate) mod publish;
pub(crate) mod rollback;
pub(crate) mod secret;
pub(crate) mod subscriber;
pub(crate) mod subscriptions;
pub(crate) mod trace;
pub(crate) mod try_out;

pub(crate) mod command_line;
pub(crate) mod named_secret;
pub(crate) mod publish_moment;

#[cfg(test)]
mod tests;

//! One file per subcommand.

pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod publish;
pub(crate) mod subscriber;

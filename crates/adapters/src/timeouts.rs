//! How long a call to AWS may take.

use std::time::Duration;

/// The timeout of a call to AWS, all tries together.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(8);

//! Finds the location in a file that a problem with a subscription refers to.
//!
//! Separate because lints, `try` and `dev` all report problems with subscriptions that are already
//! parsed.

use delivery::subscription::Subscription;
use dialects::{Finding, Reading};

use crate::operations::writable::Problem;

/// Converts problems with subscriptions to findings with a file, a line and a column.
pub(crate) struct Locations<'a> {
    pub(crate) reading: &'a Reading,
    /// The file that a finding names if its location is unknown.
    pub(crate) first: &'a str,
}

impl Locations<'_> {
    /// Creates a finding at a field of the subscription. If the field has no location, the finding
    /// gets the location of another field. If no field has a location, the finding is at the
    /// beginning of the first file.
    pub(crate) fn finding(
        &self,
        subscription: &Subscription,
        field: &str,
        problem: Problem,
    ) -> Finding {
        let Problem { severity, message, help } = problem;
        let beginning = || (self.first.to_owned(), 1, 1);
        let stated = self.reading.origins.get(&subscription.name).and_then(|origins| {
            let of_field = origins.get(field).and_then(|origin| location(origin));
            // Some origins are not locations in a file, such as the defaults of a cluster.
            of_field.or_else(|| origins.values().find_map(|origin| location(origin)))
        });
        let (file, line, column) = stated.unwrap_or_else(beginning);
        let field = field.to_owned();
        Finding { severity, file, line, column, field, message, help, reference: None }
    }
}

/// Parses the first `file:line:column` of an origin, which may list several, separated by commas.
pub(crate) fn location(origin: &str) -> Option<(String, u64, u64)> {
    // Split from the right, because a path may contain colons.
    let (rest, column) = origin.split(", ").next()?.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?, column.parse().ok()?))
}

//! Finds the place in a file for a finding about a subscription.
//!
//! Separate because lints, `try` and `dev` all report problems with subscriptions that are already
//! parsed.

use delivery::subscription::Subscription;
use dialects::{Finding, Reading};

use crate::operations::writable::Problem;

/// Finds the location of a field.
pub(crate) struct Locations<'a> {
    pub(crate) reading: &'a Reading,
    /// The file to use if no location is known.
    pub(crate) first: &'a str,
}

impl Locations<'_> {
    /// A finding at the field, otherwise at any field of the subscription, otherwise at the
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
            // An origin may not be a location: the defaults of a cluster are in no file.
            of_field.or_else(|| origins.values().find_map(|origin| location(origin)))
        });
        let (file, line, column) = stated.unwrap_or_else(beginning);
        let field = field.to_owned();
        Finding { severity, file, line, column, field, message, help, reference: None }
    }
}

/// Parses the first `file:line:column`; an origin may list several, separated by commas.
pub(crate) fn location(origin: &str) -> Option<(String, u64, u64)> {
    // Split from the right, because a path may contain colons.
    let (rest, column) = origin.split(", ").next()?.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((file.to_owned(), line.parse().ok()?, column.parse().ok()?))
}

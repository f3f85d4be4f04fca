//! Compares ARNs with patterns that may contain wildcards, by the rules of IAM policies.
//!
//! This module is separate because it is pure and must be exact. It decides which resources a
//! namespace may use, and which missing permissions `check` and `doctor` report. It does not
//! support policy variables: ARNs in stack parameters have none.

/// Returns true if the pattern covers every resource whose name consists of these texts with
/// arbitrary characters between them. A single text is the name of exactly one resource.
///
/// `*` matches any number of characters, `?` matches one. A segment is the text between two colons.
/// A `*` matches only within its segment, unless it is the last character of the segment.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html>
#[must_use]
pub fn covers(pattern: &str, resource: &[&str]) -> bool {
    let resource = units(resource);
    let pattern: Vec<char> = pattern.chars().collect();
    // The value at index n is true if the pattern up to here can match exactly the first n units of
    // the resource.
    let mut covered: Vec<bool> = (0..=resource.len()).map(|units| units == 0).collect();
    for (index, character) in pattern.iter().enumerate() {
        covered = match character {
            '*' => {
                let ends_segment = pattern.get(index + 1).is_none_or(|next| *next == ':');
                let may_skip = |unit: &Unit| ends_segment || *unit != Unit::Character(':');
                stretched(&covered, &resource, may_skip)
            }
            '?' => stepped(
                &covered,
                &resource,
                |unit| matches!(unit, Unit::Character(character) if *character != ':'),
            ),
            literal => stepped(&covered, &resource, |unit| *unit == Unit::Character(*literal)),
        };
    }
    covered.last().copied().unwrap_or(false)
}

/// A unit of a resource's name: one character, or a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// This literal character, which the pattern must match.
    Character(char),
    /// Arbitrary characters between two texts. Only `*` matches them.
    Anything,
}

fn units(resource: &[&str]) -> Vec<Unit> {
    let mut units = Vec::new();
    for (index, text) in resource.iter().enumerate() {
        if index > 0 {
            units.push(Unit::Anything);
        }
        units.extend(text.chars().map(Unit::Character));
    }
    units
}

/// Consumes one more unit. The result at index n is true if `covered` is true at n-1 and the n-th
/// unit matches.
fn stepped(covered: &[bool], resource: &[Unit], matches: impl Fn(&Unit) -> bool) -> Vec<bool> {
    let further = covered.iter().zip(resource).map(|(covered, unit)| *covered && matches(unit));
    std::iter::once(false).chain(further).collect()
}

/// Skips any number of units. The result at index n is true if `covered` is true at n, or at an
/// earlier index from which `may_skip` allows all units up to n.
fn stretched(covered: &[bool], resource: &[Unit], may_skip: impl Fn(&Unit) -> bool) -> Vec<bool> {
    let mut stretched = covered.to_vec();
    for (index, unit) in resource.iter().enumerate() {
        stretched[index + 1] |= stretched[index] && may_skip(unit);
    }
    stretched
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &[&str] = &["arn:aws:sqs:eu-west-1:123456789012:lost"];
    const BLOBS: &[&str] = &["arn:aws:s3:::letters/shop/n/t/s/", ".json"];

    #[test]
    fn a_pattern_covers_what_iam_lets_it_cover() {
        for (pattern, resource, expected) in [
            ("arn:aws:sqs:eu-west-1:123456789012:lost", QUEUE, true),
            ("arn:aws:sqs:eu-west-1:123456789012:los?", QUEUE, true),
            ("arn:aws:sqs:eu-west-1:123456789012:lost?", QUEUE, false),
            ("arn:aws:sqs:eu-west-1:123456789012:lo", QUEUE, false),
            ("arn:aws:sqs:eu-west-1:123456789012:Lost", QUEUE, false),
            ("arn:aws:sqs:eu-west-1:123456789012:*", QUEUE, true),
            ("arn:aws:sqs:*:123456789012:lost", QUEUE, true),
            ("arn:aws:sqs:*:*:*", QUEUE, true),
            ("arn:aws:sqs:eu-*-1:123456789012:l*t", QUEUE, true),
            // A `*` at the end of a segment also matches later segments. Elsewhere it does not.
            ("arn:aws:sqs:*:lost", QUEUE, true),
            ("arn:aws:sqs:eu-*t", QUEUE, false),
            ("arn:aws:sqs:eu-west-1?123456789012:lost", QUEUE, false),
            ("*", QUEUE, true),
            ("", QUEUE, false),
            ("*", BLOBS, true),
            ("arn:aws:s3:::letters/*", BLOBS, true),
            ("arn:aws:s3:::letters/shop/*", BLOBS, true),
            ("arn:aws:s3:::letters/shop/n/*", BLOBS, true),
            ("arn:aws:s3:::letters/*/t/*.json", BLOBS, true),
            ("arn:aws:s3:::letters*", BLOBS, true),
            ("arn:aws:s3:::letters", BLOBS, false),
            ("arn:aws:s3:::letters/shop", BLOBS, false),
            ("arn:aws:s3:::letters/shops/*", BLOBS, false),
            ("arn:aws:s3:::letters/shop/n/t/s/2026/*", BLOBS, false),
            ("arn:aws:s3:::letters/shop/n/t/s/?.json", BLOBS, false),
            ("arn:aws:s3:::letters/*.txt", BLOBS, false),
            ("arn:aws-cn:s3:::letters/*", BLOBS, false),
            // A `*` in the ARN of a resource is an ordinary character.
            ("arn:aws:s3:::b/a*/?", &["arn:aws:s3:::b/a*/x"], true),
            ("arn:aws:s3:::b/a?/*", &["arn:aws:s3:::b/a*/", ""], true),
        ] {
            assert_eq!(covers(pattern, resource), expected, "{pattern} {resource:?}");
        }
    }
}

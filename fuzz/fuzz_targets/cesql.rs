//! Any text as an expression of CloudEvents SQL, evaluated on any event.
//!
//! - Nothing panics.
//! - The canonical text parses to the same expression.
//! - A second evaluation gives the same result, which is also the result of the explanation.
//! - The implied conditions for the index match every event that the expression matches.
//!
//! The input has two lines: an event and an expression.

#![no_main]

use delivery::event::Members;
use delivery::subscription::filter::Filter;
use delivery::subscription::filter::cesql::{Cesql, Value};
use lastmile_fuzz::lines;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let ([event, expression], _) = lines(text);
    let Ok(reading) = Cesql::read(expression) else { return };
    let (cesql, canonical) = (&reading.cesql, reading.cesql.to_string());
    let again = Cesql::read(&canonical).expect("what is written is read");
    assert_eq!((&again.cesql, again.never_boolean), (cesql, reading.never_boolean), "{canonical}");
    assert_eq!(again.cesql.to_string(), canonical);
    let Ok(members) = Members::parse(event) else { return };
    let (value, error) = cesql.evaluate(&members);
    let is_taken = value == Value::Boolean(true) && error.is_none();
    assert_eq!(cesql.evaluate(&members), (value.clone(), error), "another answer");
    assert_eq!(again.cesql.evaluate(&members), (value, error), "another answer of {canonical}");
    assert_eq!(cesql.takes(&members), is_taken);
    assert_eq!(cesql.explain(&members).matches, is_taken, "{canonical}");
    assert!(!is_taken || !reading.never_boolean, "{canonical} is a boolean");
    assert!(!is_taken || cesql.implied().takes(&members), "{canonical} implies less");
    assert_eq!(Filter::Cesql(cesql.clone()).takes(&members), is_taken);
});

//! Any text as a record. Nothing panics, and the elements equal the record byte by byte. Messages
//! of SNS, EventBridge and S3 are converted to CloudEvents.

#![no_main]

use std::sync::Arc;

use delivery::event::envelope::{decode, publisher};
use delivery::event::{Element, Input, Members, decode_one};
use libfuzzer_sys::fuzz_target;

const AS_THEY_ARE: [Input; 5] =
    [Input::Auto, Input::CloudEvents, Input::EventGrid, Input::Custom, Input::Opaque];
const CONVERTED: [Input; 4] = [Input::Sns, Input::SnsWhole, Input::EventBridge, Input::S3];
/// Members of an SNS message that can end or confirm a subscription.
const ENDS_IT: [&str; 3] = ["UnsubscribeURL", "SubscribeURL", "Token"];

fuzz_target!(|text: &str| {
    let body: Arc<str> = text.into();
    for input in AS_THEY_ARE {
        same(text, &decode(&body, input));
    }
    for element in CONVERTED.iter().flat_map(|input| decode(&body, *input)) {
        let Element::Event(event) = element else { continue };
        let again = decode_one(event.text(), Input::CloudEvents);
        assert!(matches!(again, Element::Event(again) if again.text() == event.text()));
    }
});

/// Checks that only separators are between the elements.
fn same(record: &str, elements: &[Element]) {
    let mut rest = record;
    for element in elements {
        let text = match element {
            Element::Event(event) => event.text(),
            Element::Malformed { text, .. } => text,
        };
        let Some((before, after)) = rest.split_once(&**text) else {
            // The members that can end a subscription of SNS are left out.
            let members = Members::parse(text).expect("a message of SNS");
            let is_left_out = |name: &&str| members.get(name).is_none();
            assert!(publisher(text).is_some() && ENDS_IT.iter().all(is_left_out), "{text}");
            return;
        };
        assert!(is_between(before), "{before:?} is in no element");
        rest = after;
    }
    assert!(is_between(rest), "{rest:?} is in no element");
}

fn is_between(text: &str) -> bool {
    text.chars().all(|character| character.is_whitespace() || "[,]".contains(character))
}

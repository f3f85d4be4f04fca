//! Any text as a record: no panic, and the bytes of every element are those of the record.

#![no_main]

use std::sync::Arc;

use delivery::event::envelope::decode;
use delivery::event::{Element, Input};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let body: Arc<str> = text.into();
    for input in [Input::Auto, Input::CloudEvents, Input::EventGrid, Input::Custom, Input::Opaque] {
        for element in decode(&body, input) {
            let bytes = match &element {
                Element::Event(event) => event.text(),
                Element::Malformed { text, .. } => text,
            };
            assert!(text.contains(bytes.as_ref()));
        }
    }
});

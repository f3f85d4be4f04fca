//! Any text as one of our attributes: no panic, and what is read is written back to something that
//! reads the same.

#![no_main]

use delivery::event::{Event, Input};
use delivery::wire::{
    read_dead_letter, read_delivery, read_hold, read_publication, write_dead_letter,
    write_delivery, write_publication,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let body = "{}".into();
    let event = Event::recall(&body, Input::Auto);
    if let Ok(delivery) = read_delivery(text, event.clone()) {
        assert_eq!(read_delivery(&write_delivery(&delivery), event).ok(), Some(delivery));
    }
    if let Ok(publication) = read_publication(text) {
        let written = write_publication(&publication);
        assert_eq!(read_hold(&written), publication.hold);
        assert_eq!(read_publication(&written).ok(), Some(publication));
    }
    if let Ok(letter) = read_dead_letter(text, &body) {
        assert_eq!(read_dead_letter(&write_dead_letter(&letter), &body).ok(), Some(letter));
    }
});

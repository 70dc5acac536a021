//! Whatever bytes come: reading a message, a request, a reply or a hook result never panics, and what was read
//! survives being written.
#![no_main]

use std::fmt::Debug;

use amplifier_protocol::chat::{ChatRequest, ChatResponse};
use amplifier_protocol::hook::HookResult;
use amplifier_protocol::message::Message;
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|bytes: &[u8]| {
    round_trip::<Message>(bytes);
    round_trip::<ChatRequest>(bytes);
    round_trip::<ChatResponse>(bytes);
    round_trip::<HookResult>(bytes);
});

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(bytes) else { return };
    let written = serde_json::to_string(&value).expect("what was read can be written");
    let again: T = serde_json::from_str(&written).expect("what we write we can read");
    assert_eq!(again, value, "a value survives being written");
}

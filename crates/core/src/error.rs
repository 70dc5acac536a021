//! Small things every error of the kernel needs. The errors themselves stand beside what raises them.

use std::error::Error;

/// An error and all its causes in one line, outermost first.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).join(": ")
}

/// An error and each of its causes, outermost first.
pub fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // A wrapper that already prints its cause, at its end or in the middle, would say everything twice.
        if !texts.iter().any(|said| said.contains(&text)) {
            texts.push(text);
        }
        source = cause.source();
    }
    texts
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without text".to_owned())
}

//! Whatever bytes come: checking and reading a mount plan never panics, and what was read survives being written.
#![no_main]

use amplifier_core::validate::MountPlanValidator;
use amplifier_protocol::locate::locate;
use amplifier_protocol::mount_plan::{MountPlan, PlanForm};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        // The scanner must hold on text that is not JSON, too.
        locate(text, "/providers/0/module");
    }
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    let validation = MountPlanValidator::validate(&value);
    if let Ok(text) = std::str::from_utf8(bytes) {
        for check in &validation.checks {
            locate(text, &check.pointer);
        }
    }
    let Ok(plan) = MountPlan::read(&value) else {
        assert!(!validation.passed(), "a plan that passes every check must be readable");
        return;
    };
    for form in [PlanForm::Nested, PlanForm::Strings] {
        let written = plan.write(form);
        let again = MountPlan::read(&written).expect("what we write we can read");
        assert_eq!(again, plan, "a plan survives being written");
    }
});

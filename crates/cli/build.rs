//! Links the unwinder into the program where it can: as a library of its own, which nothing else here uses, it costs every
//! start about a tenth of a millisecond (it is mapped, relocated, and asks the processor what it can do).
//!
//! Nothing is linked in another way when the compiler does not say where the archive is.

#![expect(clippy::disallowed_methods, reason = "a build script is asked in variables")]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    let is_gnu = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|set| set.contains("crt-static"));
    // A compiler for another machine is not the one that `cc` names, and a linker of somebody's own may not take these
    // arguments.
    let is_usual = env::var("HOST").ok() == env::var("TARGET").ok() && env::var("RUSTC_LINKER").is_err();
    if !is_gnu || is_static || !is_usual {
        return;
    }
    let asked = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let Some(archive) = asked.ok().and_then(|said| String::from_utf8(said.stdout).ok()) else { return };
    let archive = Path::new(archive.trim());
    if archive.is_absolute() && archive.is_file() {
        println!("cargo::rustc-link-arg-bins=-Wl,--whole-archive,{},--no-whole-archive", archive.display());
    }
}

//! System calls that a command in the sandbox is refused, where Landlock has no rule: it knows no permissions, no times, no
//! Unix sockets by path, no UDP. The filter sees numbers, never paths, so what it refuses is refused everywhere.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    apply_filter,
};

use super::Level;

/// Reaching into other processes and the kernel, new namespaces, and mounts: no build and no test needs them.
const OUT_OF_REACH: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];
/// What has other names or does not exist elsewhere.
#[cfg(target_arch = "x86_64")]
const OUT_OF_REACH_HERE: &[c_long] = &[libc::SYS_kexec_file_load, libc::SYS_ioperm, libc::SYS_iopl];
#[cfg(not(target_arch = "x86_64"))]
const OUT_OF_REACH_HERE: &[c_long] = &[];

/// Since Linux 5.12 new system calls have the same number everywhere; `libc` lacks these on some targets.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;

/// Permissions, owners and times, which no rule of Landlock covers.
const METADATA: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    FILE_SETATTR,
];
#[cfg(target_arch = "x86_64")]
const METADATA_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const METADATA_HERE: &[c_long] = &[];

/// Programs that copy files do without extended attributes where a file system has none.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];
/// Programs fall back when a kernel has none of these. The flags of `clone3` are out of the filter's sight, those of
/// `clone` are not.
const ABSENT: &[c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// The flags of `clone` that make namespaces.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Requests that change a file's flags through a descriptor that only reads, or type into a terminal.
const REQUESTS: &[u64] = &[0x4008_6602, 0x401c_5820, 0x5412, 0x541c];
/// The kind of a socket, without the flags beside it.
const KIND: u64 = 0xf;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Puts the filter on this thread and whatever it starts.
pub(super) fn restrict(level: Level) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let target: TargetArch = std::env::consts::ARCH
        .try_into()
        .map_err(|_| format!("seccomp filters are not made for {}", std::env::consts::ARCH))?;
    for (errno, rules) in [
        (libc::ENOSYS, whole(ABSENT)),
        (libc::EOPNOTSUPP, whole(ATTRIBUTES)),
        (libc::EPERM, forbidden(level).map_err(|error| failed(&error))?),
    ] {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(also_x32(rules), SeccompAction::Allow, action, target);
        let program: seccompiler::BpfProgram =
            filter.and_then(TryInto::try_into).map_err(|error| failed(&error))?;
        apply_filter(&program).map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn forbidden(level: Level) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = whole(OUT_OF_REACH);
    rules.extend(whole(OUT_OF_REACH_HERE));
    let request = |number: &u64| rule(&[(1, SeccompCmpOp::Eq, *number)]);
    rules.insert(libc::SYS_ioctl, REQUESTS.iter().map(request).collect::<Result<_, _>>()?);
    let flag = |flag: &libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
    };
    rules.insert(libc::SYS_clone, NAMESPACES.iter().map(flag).collect::<Result<_, _>>()?);
    // A pair is for parent and child; one of datagrams could be led to another address afterwards.
    rules.insert(libc::SYS_socketpair, vec![is_kind(libc::SOCK_DGRAM, &[])?]);
    if level == Level::ReadOnly {
        rules.extend(whole(METADATA));
        rules.extend(whole(METADATA_HERE));
        rules.insert(libc::SYS_socket, Vec::new());
        return Ok(rules);
    }
    let (inet, inet6, netlink) = (
        libc::AF_INET.unsigned_abs().into(),
        libc::AF_INET6.unsigned_abs().into(),
        libc::AF_NETLINK.unsigned_abs().into(),
    );
    let sockets = vec![
        // Unix sockets too: what listens there, such as tmux, Docker or D-Bus, runs outside and would run anything.
        rule(&[(0, SeccompCmpOp::Ne, inet), (0, SeccompCmpOp::Ne, inet6), (0, SeccompCmpOp::Ne, netlink)])?,
        is_kind(libc::SOCK_RAW, &[(0, SeccompCmpOp::Ne, netlink)])?,
        // Of netlink the list of interfaces, which programs ask for.
        rule(&[(0, SeccompCmpOp::Eq, netlink), (2, SeccompCmpOp::Ne, 0)])?,
    ];
    rules.insert(libc::SYS_socket, sockets);
    for (number, at) in mode_arguments() {
        let bit = |bit: libc::mode_t| rule(&[(at, SeccompCmpOp::MaskedEq(bit.into()), bit.into())]);
        rules.insert(number, vec![bit(libc::S_ISUID)?, bit(libc::S_ISGID)?]);
    }
    Ok(rules)
}

/// The calls that set a mode, and where it stands among their arguments.
fn mode_arguments() -> Vec<(c_long, u8)> {
    vec![
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (FCHMODAT2, 2),
    ]
}

fn whole(numbers: &[c_long]) -> Rules {
    numbers.iter().map(|number| (*number, Vec::new())).collect()
}

fn is_kind(
    kind: libc::c_int,
    further: &[(u8, SeccompCmpOp, u64)],
) -> Result<SeccompRule, seccompiler::BackendError> {
    let mut conditions = vec![(1, SeccompCmpOp::MaskedEq(KIND), kind.unsigned_abs().into())];
    conditions.extend_from_slice(further);
    rule(&conditions)
}

fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions
        .iter()
        .map(|(at, compare, value)| {
            SeccompCondition::new(*at, SeccompCmpArgLen::Dword, compare.clone(), *value)
        })
        .collect::<Result<_, _>>()?;
    SeccompRule::new(conditions)
}

/// The same calls in the other numbering that a 64-bit Intel kernel may offer.
#[cfg(target_arch = "x86_64")]
fn also_x32(rules: Rules) -> Rules {
    const X32: c_long = 0x4000_0000;
    // Those with pointers in their arguments have numbers of their own there.
    let own = [
        (libc::SYS_ioctl, 514),
        (libc::SYS_ptrace, 521),
        (libc::SYS_kexec_load, 528),
        (libc::SYS_process_vm_readv, 539),
        (libc::SYS_process_vm_writev, 540),
    ];
    let number = |known: c_long| own.iter().find(|(of, _)| *of == known).map_or(known, |(_, number)| *number);
    let other: Vec<_> = rules.iter().map(|(known, rule)| (X32 + number(*known), rule.clone())).collect();
    rules.into_iter().chain(other).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn also_x32(rules: Rules) -> Rules {
    rules
}

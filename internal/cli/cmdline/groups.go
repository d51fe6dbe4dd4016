package cmdline

// Group is a list of flags with a title, in the order of the help.
type Group struct {
	Title string // in the help and in docs/reference/reference.md
	About string // what the flags are about, in a few words
	Flags []string
}

// Groups are the groups of the flags that several commands have. The help, the man pages and
// docs/reference/reference.md have this order. A flag that is in no group belongs to its command.
var Groups = []Group{
	{"What", "which files", []string{
		"recursive", "files-from", "read-paths-from-stdin", "null", "directory",
		"include", "exclude", "include-from", "exclude-from", "min-size", "max-size", "min-age", "max-age",
		"follow-symlinks", "ignore-symlinks", "strict",
		"no-clobber", "skip-identical", "dry-run", "manifest", "manifest-check", "shard", "if-generation-match", "remove-source",
	}},
	{"Settings", "attributes of the objects", []string{
		"content-type", "content-encoding", "gzip", "content-disposition", "content-language", "cache-control",
		"metadata", "preserve-posix", "context", "custom-time", "storage-class", "predefined-acl", "acl",
		"temporary-hold", "event-based-hold", "retention-mode", "retain-until", "kms-key", "encryption-key-file", "user-project",
	}},
	{"Where", "service and credentials", []string{
		"endpoint", "emulator", "credentials-file", "impersonate-service-account", "billing-project", "additional-headers", "congestion-control",
	}},
	{"How", "connections, memory and rate", []string{
		"jobs", "chunk-size", "parallel", "parallel-by", "memory", "limit-rate", "request-rate",
	}},
	{"Retry", "failures and slow requests", []string{
		"retry-for", "max-wait", "no-circuit-breaker", "stall-timeout", "stall-rate",
	}},
	{"State", "saved uploads", []string{
		"state-dir", "no-state", "restart", "if-source-changed", "spool", "spool-limit", "state", "state-key-file", "state-unsealed", "state-lease",
	}},
	{"Output", "results, progress and logs", []string{
		"json", "quiet", "progress", "verbose", "log-file", "log-level", "report", "listen",
	}},
	{"Defaults", "the configuration file", []string{"config"}},
}

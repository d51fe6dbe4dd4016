package cmdline

import (
	"slices"

	"github.com/spf13/cobra"
)

// peerFlag is advice about a flag of gcloud, gsutil, rclone, aws or azcopy that gcsup does not have, or for which
// it has no need. If several rows have a name, the first one with flags of the command counts.
type peerFlag struct {
	names  []string
	needs  []string // the flags of a command for which the advice is right
	advice string
}

// peerFlags is the table of these flags. A name of one letter is a shorthand.
var peerFlags = []peerFlag{
	// Which files.
	{[]string{"ignore-existing", "immutable", "no-overwrite"}, []string{"no-clobber"}, "use --no-clobber"},
	{[]string{"update", "skip-if-dest-has-newer-mtime", "size-only", "exact-timestamps", "use-server-modtime"}, []string{"skip-identical"},
		"use --skip-identical=mtime, which compares size and modification time, or --skip-identical, which compares the content"},
	{[]string{"checksum", "checksums-only", "compare-hash"}, []string{"skip-identical"}, "use --skip-identical, which compares size and CRC32C"},
	{[]string{"c"}, []string{"skip-identical"}, "a source that fails does not stop the others, as with -c of gsutil; for -c of rclone use --skip-identical"},
	{[]string{"u"}, []string{"user-project", "skip-identical"}, "for -u of gsutil use --user-project, for -u of rclone --skip-identical=mtime"},
	{[]string{"dryrun"}, []string{"dry-run"}, "use --dry-run"},
	{[]string{"d", "del", "delete-before", "delete-during", "delete-after", "delete-unmatched-destination-objects", "delete-destination", "mirror-mode"}, []string{"delete"}, "use --delete, which deletes objects without a file after all files were uploaded"},
	{[]string{"delete", "delete-excluded", "max-delete", "del", "delete-before", "delete-during", "delete-after", "delete-unmatched-destination-objects", "delete-destination", "mirror-mode"}, []string{"skip-identical"},
		"gcsup sync deletes objects that have no file"},
	{[]string{"r", "R", "recursive"}, []string{"delete"}, "sync takes all files below DIR without it"},
	{[]string{"x"}, []string{"delete", "exclude"}, "use --exclude PATTERN; the patterns are those of rclone"},
	{[]string{"no-follow-symlinks", "skip-links", "e"}, []string{"ignore-symlinks"}, "use --ignore-symlinks"},
	{[]string{"copy-links", "no-ignore-symlinks"}, []string{"follow-symlinks"}, "use --follow-symlinks"},
	{[]string{"links", "l", "preserve-symlinks"}, []string{"follow-symlinks"}, "a symbolic link is not stored as one; --follow-symlinks uploads what it leads to"},
	{[]string{"skip-unsupported", "U"}, []string{"strict"}, "links, FIFOs, sockets and devices are skipped without it"},
	{[]string{"filter", "filter-from", "f"}, []string{"include", "exclude"}, "use --include and --exclude; an exclude takes precedence"},
	{[]string{"files-from-raw", "list-of-files"}, []string{"files-from"}, "use --files-from"},
	{[]string{"manifest-path"}, []string{"manifest"}, "use --manifest FILE, which also skips finished files in the next run"},
	{[]string{"L"}, []string{"manifest", "follow-symlinks"}, "for -L of gsutil use --manifest, for -L of rclone --follow-symlinks"},
	{[]string{"max-depth"}, []string{"exclude"}, "use --exclude, such as --exclude '/*/*/' for two levels"},
	{[]string{"if-metageneration-match"}, []string{"if-generation-match"}, "use --if-generation-match"},
	{[]string{"include-pattern", "include-path", "include-regex"}, []string{"include"},
		"use --include PATTERN; the patterns are those of rclone"},
	{[]string{"exclude-pattern", "exclude-path", "exclude-regex", "exclude-if-present"}, []string{"exclude"},
		"use --exclude PATTERN; the patterns are those of rclone"},
	{[]string{"include-after"}, []string{"max-age"},
		"use --max-age with an age or a time"},
	{[]string{"include-before"}, []string{"min-age"},
		"use --min-age with an age or a time"},
	{[]string{"ignore-case"}, []string{"exclude"},
		"patterns distinguish upper and lower case; write [aA] for both"},
	{[]string{"overwrite", "force", "force-if-read-only", "ignore-times"}, []string{"no-clobber", "skip-identical"},
		"an object is replaced without it; for cp -r, which keeps an object with the same bytes, use --skip-identical=off"},
	{[]string{"n"}, []string{"dry-run", "delete"},
		"for -n of rclone use --dry-run"},
	{[]string{"interactive", "i"}, []string{"dry-run", "delete"},
		"nothing is asked; use --dry-run to see what would change"},
	{[]string{"interactive"}, []string{"dry-run"},
		"nothing is asked; use --dry-run to see what would be uploaded"},
	{[]string{"create-empty-src-dirs", "include-directory-stub", "include-managed-folders"}, []string{"exclude"},
		"directories are no objects: only files are uploaded"},
	{[]string{"as-subdir"}, []string{"recursive"},
		"write DIR/. as the source to leave the name of DIR out of the objects' names"},
	{[]string{"hardlinks"}, []string{"strict"},
		"each hard link is uploaded as a file"},
	{[]string{"backup-dir", "suffix", "suffix-keep-extension"}, []string{"dry-run"},
		"a bucket with object versioning keeps what is replaced or deleted"},
	{[]string{"compare-dest", "copy-dest"}, []string{"manifest"},
		"a file is compared with its own object; --manifest skips what an earlier run has uploaded"},
	{[]string{"track-renames", "track-renames-strategy"}, []string{"delete"},
		"a renamed file is uploaded again"},
	{[]string{"fast-list", "no-traverse", "no-check-dest", "page-size"}, []string{"exclude"},
		"leave it out: whether objects are listed is chosen"},
	{[]string{"no-unicode-normalization", "case-conflict", "trailing-dot"}, []string{"exclude"},
		"leave it out: names are not changed"},
	{[]string{"all-versions", "A", "list-of-versions"}, []string{"exclude"},
		"leave it out: a file has no versions"},
	{[]string{"do-not-decompress", "decompress", "disable-auto-decoding", "header-download", "daisy-chain", "server-side-across-configs", "source-region", "sse-c-copy-source", "sse-c-copy-source-key", "copy-props", "metadata-directive", "force-glacier-transfer", "ignore-glacier-warnings", "from-to", "s2s-detect-source-changed", "s2s-handle-invalid-metadata", "s2s-preserve-access-tier", "s2s-preserve-blob-tags", "s2s-preserve-properties", "exclude-blob-type", "exclude-container"}, []string{"content-type"},
		"leave it out: it is for downloads or for copies of objects"},

	// Settings.
	{[]string{"canned-acl", "gcs-object-acl", "a"}, []string{"predefined-acl"}, "use --predefined-acl, such as --predefined-acl publicRead"},
	{[]string{"grants"}, []string{"acl"}, "use --acl ENTITY=ROLE"},
	{[]string{"preserve-acl", "no-preserve-acl", "p"}, []string{"predefined-acl"}, "a file has no access control list; use --predefined-acl"},
	{[]string{"gcs-storage-class", "s", "block-blob-tier", "page-blob-tier"}, []string{"storage-class"}, "use --storage-class"},
	{[]string{"gzip-local", "gzip-in-flight", "z", "j"}, []string{"gzip"}, "use --gzip, such as --gzip txt,csv"},
	{[]string{"gzip-local-all", "gzip-in-flight-all", "Z", "J"}, []string{"gzip"}, "use --gzip all"},
	{[]string{"custom-metadata", "update-custom-metadata", "metadata-set"}, []string{"metadata"}, "use --metadata KEY=VALUE"},
	{[]string{"M", "preserve-last-modified-time", "preserve-posix-properties", "preserve-owner", "preserve-permissions", "preserve-info"}, []string{"preserve-posix"}, "use --preserve-posix"},
	{[]string{"expires"}, []string{"cache-control"}, "use --cache-control, such as --cache-control 'max-age=3600'"},
	{[]string{"no-guess-mime-type"}, []string{"content-type"}, "use --content-type, such as --content-type application/octet-stream"},
	{[]string{"encryption-key", "decryption-keys"}, []string{"encryption-key-file"}, "use --encryption-key-file, because other users can read the command line"},
	{[]string{"sse-kms-key-id", "kms-encryption-key", "default-kms-key"}, []string{"kms-key"}, "use --kms-key"},
	{[]string{"content-md5", "no-check-hashes", "ignore-checksum", "checksum-algorithm", "checksum-mode", "put-md5", "check-md5", "check-length"}, []string{"content-type"}, "the CRC32C of each object is checked without it"},
	{[]string{"sse"}, []string{"kms-key", "encryption-key-file"},
		"objects are always encrypted; --kms-key or --encryption-key-file chooses the key"},
	{[]string{"sse-c", "sse-c-key", "cpk-by-value"}, []string{"encryption-key-file"},
		"use --encryption-key-file, because other users can read the command line"},
	{[]string{"cpk-by-name"}, []string{"kms-key"},
		"use --kms-key"},
	{[]string{"clear-encryption-key"}, []string{"kms-key", "encryption-key-file"},
		"without --kms-key and --encryption-key-file, an object has the key of its bucket"},
	{[]string{"clear-custom-metadata", "remove-custom-metadata"}, []string{"metadata"},
		"a new object has only the metadata of --metadata"},
	{[]string{"custom-contexts", "custom-contexts-file", "update-custom-contexts", "clear-custom-contexts", "remove-custom-contexts", "tags", "blob-tags"}, []string{"context"},
		"use --context KEY=VALUE; a new object has no other ones"},
	{[]string{"blob-type", "website-redirect"}, []string{"metadata"},
		"leave it out: Cloud Storage does not have it"},
	{[]string{"no-gzip-encoding"}, []string{"gzip"},
		"nothing is compressed without --gzip"},

	// Where.
	{[]string{"endpoint-url", "gcs-endpoint", "api-endpoint-override"}, []string{"endpoint"}, "use --endpoint"},
	{[]string{"account", "gcs-service-account-file", "access-token-file", "profile", "configuration"}, []string{"credentials-file", "impersonate-service-account"},
		"use --credentials-file FILE or --impersonate-service-account EMAIL"},
	{[]string{"i"}, []string{"impersonate-service-account"}, "use --impersonate-service-account EMAIL"},
	{[]string{"project", "project-number", "gcs-user-project"}, []string{"billing-project"},
		"use --billing-project for the project that is billed; a bucket needs no project"},
	{[]string{"header", "header-upload", "h"}, []string{"additional-headers", "cache-control"}, "use --additional-headers KEY=VALUE, or --cache-control, --content-type and --metadata for these headers"},
	{[]string{"request-payer"}, []string{"user-project"},
		"use --user-project PROJECT"},
	{[]string{"no-verify-ssl", "no-check-certificate", "insecure"}, []string{"endpoint"},
		"certificates are always checked; set SSL_CERT_FILE to a file with the certificate authority to trust"},
	{[]string{"ca-bundle", "ca-cert"}, []string{"endpoint"},
		"set SSL_CERT_FILE to a file with the certificate authorities"},
	{[]string{"client-cert", "client-key"}, []string{"endpoint"},
		"set GOOGLE_API_USE_CLIENT_CERTIFICATE=true, and GOOGLE_API_CERTIFICATE_CONFIG to a file that names them"},
	{[]string{"region", "gcs-location"}, []string{"endpoint"},
		"leave it out: a bucket has a location, which requests need not name"},
	{[]string{"no-sign-request", "gcs-anonymous"}, []string{"endpoint"},
		"set STORAGE_EMULATOR_HOST for a server that needs no credentials"},
	{[]string{"flags-file"}, []string{"config"},
		"use --config FILE, a file in YAML"},

	// How.
	{[]string{"bwlimit", "bwlimit-file", "max-bandwidth"}, []string{"limit-rate"}, "use --limit-rate, such as --limit-rate 20MiB"},
	{[]string{"cap-mbps"}, []string{"limit-rate"},
		"use --limit-rate, in bytes per second: 100 megabits are 12.5MB"},
	{[]string{"tpslimit", "tpslimit-burst"}, []string{"request-rate"}, "use --request-rate N"},
	{[]string{"transfers", "checkers", "process-count", "thread-count", "threads", "workers", "concurrency", "parallelism", "max-concurrent-requests"}, []string{"jobs"},
		"use --jobs N; without it, as many files are processed at a time as raise the throughput"},
	{[]string{"m"}, []string{"jobs"}, "files are uploaded several at a time without it; --jobs N sets the number"},
	{[]string{"multi-thread-streams", "s3-upload-concurrency", "upload-concurrency"}, []string{"parallel"}, "use --parallel N"},
	{[]string{"multi-thread-cutoff", "multi-thread-chunk-size"}, []string{"parallel"}, "use --parallel; the sizes of the parts are chosen"},
	{[]string{"gcs-chunk-size", "s3-chunk-size", "block-size-mb", "put-blob-size-mb"}, []string{"chunk-size"}, "use --chunk-size"},
	{[]string{"buffer-size"}, []string{"memory"}, "use --memory, for the buffers of all files together"},
	{[]string{"o"}, []string{"parallel"},
		"use --parallel for GSUtil:parallel_composite_upload_threshold; the defaults of flags can be in a file: see --config"},
	{[]string{"order-by", "check-first", "max-backlog"}, []string{"jobs"},
		"leave it out: files are uploaded in the order in which they are found"},
	{[]string{"max-transfer", "max-duration", "cutoff-mode"}, []string{"state-dir", "retry-for"},
		"end the command with SIGINT, for example by timeout(1); the next run resumes"},
	{[]string{"expected-size", "streaming-upload-cutoff"}, []string{"spool"},
		"leave it out: the size of a stream need not be known"},

	// Retry.
	{[]string{"retries", "low-level-retries", "max-retries", "max-retry-delay", "retries-sleep"}, []string{"retry-for", "max-wait"},
		"use --retry-for DURATION, such as --retry-for 12h; --max-wait is the longest wait before a retry"},
	{[]string{"timeout", "contimeout", "cli-read-timeout", "cli-connect-timeout"}, []string{"stall-timeout"}, "use --stall-timeout"},
	{[]string{"continue-on-error", "ignore-errors"}, []string{"recursive"}, "a source that fails does not stop the others"},
	{[]string{"resume"}, []string{"state-dir"},
		"run the same command again: it resumes an interrupted upload without a flag"},

	// Output.
	{[]string{"no-progress"}, []string{"progress"}, "use --progress off"},
	{[]string{"stats", "stats-one-line", "stats-one-line-date", "stats-log-level", "progress-frequency", "progress-multiline"}, []string{"progress"}, "use --progress lines"},
	{[]string{"only-show-errors", "no-user-output-enabled", "user-output-enabled", "output-level"}, []string{"quiet"}, "use --quiet"},
	{[]string{"verbosity", "debug", "log-http", "dump", "dump-headers", "dump-bodies", "D"}, []string{"verbose", "log-file"}, "use --verbose or --log-file FILE"},
	{[]string{"use-json-log", "format", "output", "output-type"}, []string{"json"}, "use --json"},
	{[]string{"query", "flatten"}, []string{"json"},
		"use --json, and a program such as jq"},
	{[]string{"print-created-message"}, []string{"quiet"},
		"the generation of each object is printed without it"},
	{[]string{"human-readable"}, []string{"json"},
		"sizes have units without it, and are bytes with --json"},
	{[]string{"no-paginate", "no-cli-pager", "auto-confirm"}, []string{"quiet"},
		"leave it out: output is not paged, and nothing is asked"},
	{[]string{"color"}, []string{"quiet"},
		"set NO_COLOR=1 for no colors"},
	{[]string{"log-format", "log-systemd", "syslog", "syslog-facility"}, []string{"log-file"},
		"use --log-file FILE; under systemd, the messages are in the journal"},
}

// elsewhere maps commands of gcloud and gsutil that gcsup and gcsup-fleet do not have
// to advice for the user.
var elsewhere = map[string]string{
	"rsync":    "to make a prefix equal to a directory, run: gcsup sync --delete DIR gs://BUCKET/PREFIX",
	"mirror":   "to make a prefix equal to a directory, run: gcsup sync --delete DIR gs://BUCKET/PREFIX",
	"sync":     "to make a prefix equal to a directory, run: gcsup sync --delete DIR gs://BUCKET/PREFIX",
	"ls":       "to list objects, run: gcloud storage ls",
	"list":     "to list objects, run: gcloud storage ls",
	"du":       "to add up the sizes of objects, run: gcloud storage du",
	"stat":     "to describe an object, run: gcloud storage objects describe",
	"rm":       "to delete objects, run: gcloud storage rm",
	"delete":   "to delete objects, run: gcloud storage rm",
	"mv":       "to rename objects, run: gcloud storage mv",
	"move":     "to rename objects, run: gcloud storage mv",
	"cat":      "to print an object, run: gcloud storage cat",
	"get":      "to download an object, run: gcloud storage cp",
	"download": "to download an object, run: gcloud storage cp",
	"hash":     "to print checksums, run: gcloud storage hash",
	"mb":       "to create a bucket, run: gcloud storage buckets create",
	"rb":       "to delete a bucket, run: gcloud storage buckets delete",
}

// peerAdvice returns the advice about a flag of another tool, or "" if there is none for cmd. Before
// a command, the flags of the commands below cmd count.
func peerAdvice(cmd *cobra.Command, name string) string {
	for _, p := range peerFlags {
		if !slices.Contains(p.names, name) {
			continue
		}
		c := cmd
		if cmd.HasSubCommands() {
			c = withFlag(cmd, p.needs[0])
		}
		if c != nil && !slices.ContainsFunc(p.needs, func(flag string) bool { return c.Flags().Lookup(flag) == nil }) {
			return p.advice
		}
	}
	return ""
}

// PeerFlags returns the names in the table for which cmd has advice, for a test of that command.
func PeerFlags(cmd *cobra.Command) (names []string) {
	for _, p := range peerFlags {
		for _, name := range p.names {
			if peerAdvice(cmd, name) != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// Package errkind names the kinds of errors of the library. The JSON lines of gcsup, the
// telemetry of package upload/otel, and the records and logs of gcsup-fleet have the same names.
//
// They are those of [upload.ErrorKind], and these:
//
//	in_use                [manifest.ErrLocked]
//	newer_version         [manifest.ErrVersion]
//	usage                 [tree.ErrUsage], [tree.ErrCollision], and the errors of package manifest for a wrong file or call
//	no_input              those of package tree about one file
//	nothing_deleted       [mirror.ErrIncomplete]
//	local_io              [tree.ErrSort]
package errkind

import (
	"errors"
	"slices"

	"gcsup/upload"
	"gcsup/upload/manifest"
	"gcsup/upload/mirror"
	"gcsup/upload/tree"
)

// These kinds have no sentinel error of their own.
const (
	LocalIO = "local_io" // an error of the operating system, or any other one
	NoInput = "no_input" // a source cannot be opened, or is not a file
)

// kinds is the table of the kinds that package upload does not know. The first match counts.
var kinds = []struct {
	sentinel error
	kind     string
}{
	{tree.ErrUsage, "usage"},
	{tree.ErrCollision, "usage"},
	{tree.ErrSymlink, NoInput},
	{tree.ErrNotRegular, NoInput},
	{tree.ErrName, NoInput},
	{tree.ErrLeftOut, NoInput},
	{mirror.ErrTooManyDeletions, "too_many_deletions"},
	{mirror.ErrNoFiles, "no_files"},
	{mirror.ErrIncomplete, "nothing_deleted"},
	{tree.ErrSort, LocalIO},
	{manifest.ErrLocked, "in_use"},
	{manifest.ErrVersion, "newer_version"},
	{manifest.ErrFormat, "usage"},
	{manifest.ErrUnsorted, "usage"},
	{manifest.ErrClosed, "usage"},
}

// Of returns the kind of an error.
func Of(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.sentinel) {
			return k.kind
		}
	}
	return upload.ErrorKind(err)
}

// Kinds returns all kinds that Of can return, sorted.
func Kinds() []string {
	all := upload.ErrorKinds()
	for _, k := range kinds {
		all = append(all, k.kind)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

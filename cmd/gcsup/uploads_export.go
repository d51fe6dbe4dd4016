package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// newUploadsExport returns the command that writes a saved upload for another
// machine. An export is a secret: it passes through pipes and files only, never
// through arguments, which every user of a machine can list.
func newUploadsExport(std stdio) *cobra.Command {
	var target targetFlags
	cmd := &cobra.Command{
		Use:   "export ID [flags] > FILE",
		Short: "Export a saved upload for another machine",
		Long: `export writes a saved upload to standard output, for gcsup uploads import on a
machine that has a copy of the source. The export contains the session URI, with
which anyone can write to the upload. It is not printed to a terminal. A file gets
mode 0600.

Resume the upload on one machine only, and delete it on the other: uploads rm.`,
		Example: `  gcsup uploads export 5f0c2f7d8ad2cc0d4b4a > upload.json
  gcsup uploads export 5f0c2f7d8ad2cc0d4b4a |
    ssh other gcsup uploads import /data/disk.img`,
		Args:              cmdline.Exactly(1, "the ID of one saved upload, as uploads list shows it"),
		ValidArgsFunction: target.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := target.openSaved(cmd.Context(), std)
			if err != nil {
				return err
			}
			defer c.close()
			store := c.saved
			id, err := completeID(cmd.Context(), store, args[0])
			if err != nil {
				return withHint(err, "")
			}
			doc, err := store.Load(cmd.Context(), id)
			if err == nil && streamInParts(upload.Describe(doc)) { // maybe of a process that runs
				return exit.Usagef("%s is a stream in parts, which can only be removed, because no other process has its bytes", id)
			}
			// Without the lock the export could be out of date.
			unlock, err := store.Lock(cmd.Context(), id)
			if err != nil {
				return err
			}
			defer unlock()
			if doc, err = store.Load(cmd.Context(), id); err != nil {
				return withHint(err, "")
			}
			if doc.Spool != nil {
				return exit.Usagef("%s is a stream, whose bytes are only on this machine: resume it here", doc.ID)
			}
			data, err := state.Encode(doc)
			if err != nil {
				return err
			}
			return writeSecret(std.out, data)
		},
	}
	target.addSaving(cmd.Flags())
	return cmd
}

// writeSecret writes data to a pipe, or to a file that only its owner can read.
func writeSecret(w io.Writer, data []byte) error {
	if f, ok := w.(*os.File); ok {
		if term.IsTerminal(int(f.Fd())) {
			return exit.Usagef("an export is a secret, with which anyone can write to the upload: write it to a file or a pipe, not to a terminal")
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if err := f.Chmod(0o600); err != nil {
				return fmt.Errorf("standard output: make the file private: %w", err)
			}
		}
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// exportLimit bounds the size of an export in bytes. No saved upload is larger.
const exportLimit = 16 << 20

func newUploadsImport(std stdio) *cobra.Command {
	var target targetFlags
	cmd := &cobra.Command{
		Use:   "import SOURCE [flags] < FILE",
		Short: "Import an upload from another machine",
		Long: `import reads the output of gcsup uploads export from standard input and saves it for
SOURCE, a copy of the original file. It prints the ID, the destination and the command
that resumes. The export determines the destination: import only one that you trust.

import compares the sizes. A resume compares SOURCE with the checksums of the bytes
that were sent, before it sends anything.`,
		Example: `  gcsup uploads import /data/disk.img < upload.json`,
		// The user names the file to read, never the export: an export that is not
		// trustworthy could otherwise upload any file to any destination.
		Args: cmdline.Exactly(1, "SOURCE, a copy of the original file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := readExport(std.in)
			if err != nil {
				return err
			}
			source := args[0]
			c, con, err := target.openSaved(cmd.Context(), std)
			if err != nil {
				return err
			}
			defer c.close()
			// Import makes no request, so it uses the export's endpoint.
			up, err := c.offline(doc.Endpoint)
			if err != nil {
				return err
			}
			id, err := up.Import(cmd.Context(), doc, source)
			if errors.Is(err, fs.ErrExist) {
				return exit.WithKind(err, exit.ErrUsage)
			}
			if err != nil {
				return sourceError(err, source)
			}
			if _, err := fmt.Fprintln(std.out, id); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
			expires := "does not expire"
			if !doc.Expires().IsZero() {
				expires = "expires in " + readable.Span(time.Until(doc.Expires()))
			}
			con.Message("saved %s to %s, started at %s, %s\nto resume: %s", source, doc.Spec.URL(),
				endpointText(doc.Endpoint), expires, resumeCommand(process.Words(), cmd.Flags(), id))
			if doc.Endpoint != c.endpoint {
				con.Message("the endpoint in use is %s: %v", endpointText(c.endpoint), target.endpointMismatch(c, doc.Endpoint))
			}
			if text := unusualOptions(doc.Spec); text != "" {
				con.Message("warning: it has object settings that you did not give: %s", text)
			}
			return nil
		},
	}
	target.addSaving(cmd.Flags())
	return cmd
}

// unusualOptions returns s as JSON if it has more than names, a content type and a
// precondition, else "". An import must show, for example, that the object will be
// public.
func unusualOptions(s session.Spec) string {
	usual := session.Spec{
		Bucket: s.Bucket, Object: s.Object, ContentType: s.ContentType,
		IfGenerationMatch: s.IfGenerationMatch, NoClobber: s.NoClobber,
	}
	text, err := json.Marshal(s)
	if err != nil || usual.Conflict(s) == "" {
		return ""
	}
	return string(text)
}

func readExport(r io.Reader) (*state.Upload, error) {
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return nil, exit.Usagef("standard input is a terminal: want the output of gcsup uploads export")
	}
	data, err := io.ReadAll(io.LimitReader(r, exportLimit))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	doc, err := state.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w; want the output of gcsup uploads export", err)
	}
	return doc, nil
}

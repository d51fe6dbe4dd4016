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

	"gcsup/session"
	"gcsup/upload"
)

// An upload is handed over to another machine by what sessions export prints
// here, and sessions import reads there. It passes through pipes and files
// only: never through arguments, which everybody can list.

func newSessionsExport(std stdio) *cobra.Command {
	var target targetFlags
	cmd := &cobra.Command{
		Use:   "export ID [flags] > FILE",
		Short: "Write a saved upload out, for another machine",
		Long: `export writes a saved upload to standard output, for gcsup sessions import on a
machine that has a copy of the source. Whoever reads it can write to the upload, so
it is not shown on a terminal, and a file is made readable by its owner only.

Go on with the upload at one place only, and forget it at the other: sessions rm.`,
		Example: `  gcsup sessions export 5f0c2f7d8ad2cc0d4b4a > upload.json
  gcsup sessions export 5f0c2f7d8ad2cc0d4b4a | ssh other gcsup sessions import /data/disk.img`,
		Args:              exactlyOne("the ID of one saved upload, as sessions list shows it"),
		ValidArgsFunction: target.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := target.openStore()
			if err != nil {
				return err
			}
			defer store.Close()
			// The lock keeps what is written out from being old at once.
			unlock, err := store.Lock(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer unlock()
			token, err := store.Load(cmd.Context(), args[0])
			if err != nil {
				return withHint(err, "")
			}
			data, err := session.Encode(token)
			if err != nil {
				return err
			}
			return writeSecret(std.out, data)
		},
	}
	target.addStateDir(cmd.Flags())
	return cmd
}

// writeSecret writes to a pipe, or to a file that nobody else can read.
func writeSecret(w io.Writer, data []byte) error {
	if f, ok := w.(*os.File); ok {
		if term.IsTerminal(int(f.Fd())) {
			return usagef("what this prints is a secret, with which anyone can write to the upload: send it to a file or a pipe, not to a terminal")
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if err := f.Chmod(0o600); err != nil {
				return fmt.Errorf("standard output: a file that others may read: %w", err)
			}
		}
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// exportLimit is more than any saved upload has.
const exportLimit = 16 << 20

func newSessionsImport(std stdio) *cobra.Command {
	var target targetFlags
	cmd := &cobra.Command{
		Use:   "import SOURCE [flags] < FILE",
		Short: "Take over an upload from another machine",
		Long: `import reads from standard input what gcsup sessions export wrote on another machine,
and saves it for SOURCE, a copy of the file there. It prints the ID, where SOURCE will
go, and how to resume. It is the export that says where: import only one that you trust.

The size is compared now. When the upload is resumed, what was sent of the file there
is compared with SOURCE before anything is sent.`,
		Example: `  gcsup sessions import /data/disk.img < upload.json`,
		// The file that is to be read is the user's word, never the export's: that
		// may come from anywhere, and says already where the file goes.
		Args: exactlyOne("SOURCE, a copy of the file whose upload it is"),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := readExport(std.in)
			if err != nil {
				return err
			}
			source := args[0]
			c, err := target.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer c.close()
			// For its own endpoint, whichever is in use here: nobody is asked.
			up, err := upload.New(nil, &upload.Options{Endpoint: token.Endpoint, Store: c.saved})
			if err != nil {
				return err
			}
			id, err := up.Import(cmd.Context(), token, source)
			if errors.Is(err, fs.ErrExist) {
				return kindError{err, errUsage}
			}
			if err != nil {
				return sourceError(err, source)
			}
			if _, err := fmt.Fprintln(std.out, id); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
			con := newConsole(std.err, false)
			con.message("saved %s to %s, begun at %s, expires in %s\nto resume: %s", source, token.Spec.URL(),
				endpointText(token.Endpoint), formatSpan(time.Until(token.Expires())), resumeCommand(program(), cmd.Flags(), id))
			if token.Endpoint != c.endpoint {
				con.message("that goes to %s: %v", endpointText(c.endpoint), target.endpointMismatch(c, token))
			}
			if text := unusualOptions(token.Spec); text != "" {
				con.message("warning: it has options that gcsup cp never gives: %s", text)
			}
			return nil
		},
	}
	target.addStateDir(cmd.Flags())
	return cmd
}

// unusualOptions is a Spec that no command line makes, "" for another. Who is handed
// one should see, say, that the object will be public.
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

func readExport(r io.Reader) (*session.Token, error) {
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return nil, usagef("want what gcsup sessions export wrote on standard input, not a terminal")
	}
	data, err := io.ReadAll(io.LimitReader(r, exportLimit))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	token, err := session.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w; want what gcsup sessions export wrote", err)
	}
	return token, nil
}

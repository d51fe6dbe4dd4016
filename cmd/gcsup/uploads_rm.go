package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/session/state"
	"gcsup/upload"
)

func newUploadsRm(std stdio) *cobra.Command {
	var target targetFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rm ID...",
		Short: "Delete saved uploads",
		Long: `rm deletes saved uploads, without a request about them. The service drops the bytes of
a session a week after its start; they cost nothing. Warning: the parts and temporary
objects of an upload in parts (--parallel) stay, and are billed, and rm prints where they
are. To remove them, use cancel instead.`,
		Example:           `  gcsup uploads rm 5f0c2f7d`,
		Args:              cmdline.AtLeast(1, "the ID of a saved upload, as uploads list shows it"),
		ValidArgsFunction: target.completeIDs,
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, con, err := target.openSaved(cmd.Context(), std)
			if err != nil {
				return err
			}
			defer c.close()
			return forEach(cmd.Context(), std, c, asJSON, ids, func(id string) error {
				doc, err := forget(cmd.Context(), c.saved, id)
				if err == nil && doc != nil && doc.Parts != nil {
					what, where := partsText(doc)
					con.Message("warning: %s stay, and are billed: %s", what, where)
				}
				switch {
				case err != nil:
					return err
				case asJSON && doc == nil:
					return printAction(std.out, actionDeleted, reasonUnusable, upload.SavedUpload{ID: id}, false, nil)
				case asJSON:
					return printAction(std.out, actionDeleted, reasonRequested, upload.Describe(doc), false, nil)
				case doc == nil:
					con.Message("deleted the saved upload %s, which could not be used", id)
				case doc.Parts != nil:
					con.Message("deleted %s: %s were committed", uploadText(upload.Describe(doc)), committedText(doc))
				default:
					con.Message("deleted %s: %s were committed; the service drops them in %s", uploadText(upload.Describe(doc)),
						committedText(doc), readable.Span(time.Until(doc.Expires())))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON Lines, one for each upload")
	cmdline.Common(cmd.Flags(), "json")
	target.addSaving(cmd.Flags())
	return cmd
}

// partsText describes what an upload in parts has stored at the service, and where.
func partsText(t *state.Upload) (what, where string) {
	if t.Parts.Prefix != "" {
		where = fmt.Sprintf("gs://%s/%s*", process.Printable(t.Spec.Bucket), t.Parts.Prefix)
		if !t.Parts.Upload.IsZero() { // of a stream
			where += ", and a multipart upload to the next one"
		}
		return "the temporary objects of " + t.ID, where
	}
	return "the parts of " + t.ID, "multipart upload to " + process.Printable(t.Spec.URL())
}

// forget deletes a saved upload that no process uses, even if it cannot be used.
// The saved upload is nil if it could not be read.
func forget(ctx context.Context, store state.Store, id string) (*state.Upload, error) {
	unlock, err := store.Lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	doc, err := store.Load(ctx, id)
	if errors.Is(err, state.ErrNotFound) {
		return nil, err
	}
	if err == nil {
		if err := upload.RemoveSpool(ctx, doc); err != nil {
			return nil, err
		}
	}
	return doc, store.Delete(ctx, id)
}

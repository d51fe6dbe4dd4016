package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/session/state"
	"gcsup/upload"
)

// idLength is the length of the IDs that package upload makes.
const idLength = 20

// maxCandidates bounds how many saved uploads a message lists.
const maxCandidates = 10

// completeID returns the ID of a saved upload of which text is the beginning. It returns text
// if there is none, or if it is an ID.
func completeID(ctx context.Context, store state.Store, text string) (string, error) {
	if text == "" || len(text) >= idLength {
		return text, nil
	}
	ids, err := store.List(ctx)
	if err != nil {
		return "", err
	}
	if slices.Contains(ids, text) {
		return text, nil
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, text) })
	switch len(ids) {
	case 0:
		return text, nil
	case 1:
		return ids[0], nil
	}
	var candidates strings.Builder
	for i, id := range ids {
		if i == maxCandidates {
			fmt.Fprintf(&candidates, "\n  and %d more", len(ids)-i)
			break
		}
		fmt.Fprintf(&candidates, "\n  %s  %s", id, inFewWords(ctx, store, id))
	}
	return "", process.WithLines(exit.Usagef("%d saved uploads begin with %s; write more of the ID:", len(ids), text), process.Block(candidates.String()))
}

// inFewWords returns the source and the destination of a saved upload in a few words. It returns
// "" for an upload that cannot be used.
func inFewWords(ctx context.Context, store state.Store, id string) string {
	t, err := store.Load(ctx, id)
	if err != nil {
		return ""
	}
	return process.Printable(fmt.Sprintf("%s to %s", filepath.Base(upload.Describe(t).Source()), path.Join(t.Spec.Bucket, t.Spec.Object)))
}

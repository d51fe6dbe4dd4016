package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestLookedUp checks that every job gets its object, even in a bucket with so many others that a listing is not worth its
// pages, and that no job follows if the bucket cannot be listed.
func TestLookedUp(t *testing.T) {
	t.Parallel()
	server := fakegcs.NewServer(t, &fakegcs.Options{NoMD5: true})
	require.NoError(t, server.CreateBucket(fakegcs.Bucket{Name: "bkt"}))
	var jobs []upload.Job
	for i := range 14_000 {
		name := fmt.Sprintf("p/%06d", i)
		if i%1000 == 500 {
			jobs = append(jobs, upload.Job{Spec: upload.Spec{Bucket: "bkt", Object: name}})
			if i%3000 == 500 {
				name += "-longer" // the listing of this prefix has another object
			}
		}
		if _, err := server.PutObject(fakegcs.Object{Bucket: "bkt", Name: name}, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	u, err := upload.New(server.Client(), &upload.Options{Endpoint: server.URL})
	require.NoError(t, err)
	var r batchManifest
	got := slices.Collect(r.lookedUp(t.Context(), u, upload.Listing{Bucket: "bkt", Prefix: "p/"}, slices.Values(jobs)))
	if len(got) != len(jobs) || r.err != nil {
		t.Fatalf("%d jobs of %d, %v", len(got), len(jobs), r.err)
	}
	for i, job := range got {
		want := i%3 != 0
		if !job.Listed || job.Spec.Object != jobs[i].Spec.Object || (job.Object != nil) != want || want && job.Object.Name != job.Spec.Object {
			t.Errorf("%d: %+v", i, job)
		}
	}
	if requests := server.Stats().Ops[faults.OpList]; requests > 14 {
		t.Errorf("%d requests", requests)
	}
	denied := faults.Fault{Match: faults.Match{Op: faults.OpList}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}}
	require.NoError(t, server.AddFaults(denied))
	got = slices.Collect(r.lookedUp(t.Context(), u, upload.Listing{Bucket: "bkt", Prefix: "p/"}, slices.Values(jobs)))
	if len(got) != 0 || !errors.Is(r.err, session.ErrPermission) {
		t.Errorf("%d jobs although listings are denied, %v", len(got), r.err)
	}
}

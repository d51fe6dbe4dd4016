package fakegcstest_test

import (
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/fakegcstest"
	"gcsup/internal/require"
)

func TestFakeGCS(t *testing.T) {
	for _, test := range []struct {
		name string
		opts func(t *testing.T) *fakegcs.Options
	}{
		{"memory", func(*testing.T) *fakegcs.Options { return &fakegcs.Options{} }},
		{"directory", func(t *testing.T) *fakegcs.Options { return &fakegcs.Options{Dir: t.TempDir()} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("ExampleCase_Check runs the same cases")
			}
			fakegcstest.Run(t, func(t *testing.T) fakegcstest.Target {
				srv := fakegcs.NewServer(t, test.opts(t))
				require.NoError(t, srv.CreateBucket(fakegcs.Bucket{Name: "bkt"}))
				return fakegcstest.Target{URL: srv.URL, Bucket: "bkt", Project: "any"}
			})
		})
	}
}

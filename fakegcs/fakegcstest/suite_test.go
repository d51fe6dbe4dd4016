package fakegcstest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/fakegcstest"
)

// No case holds for a server that accepts everything, or for one that returns only
// errors.
func TestCasesCanFail(t *testing.T) {
	if testing.Short() {
		t.Skip("checks the cases")
	}
	for name, handler := range map[string]http.HandlerFunc{
		"yes": func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Location", "http://"+r.Host+"/session")
			w.Header().Set("X-GUploader-UploadID", "x")
			io.WriteString(w, "{}")
		},
		"no": func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			http.Error(w, "no", http.StatusInternalServerError)
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(handler)
			defer srv.Close()
			target := fakegcstest.Target{URL: srv.URL, Bucket: "bkt", Project: "any", Patience: time.Nanosecond}
			names := map[string]bool{}
			for _, c := range fakegcstest.Cases() {
				if err := c.Check(t.Context(), target); err == nil {
					t.Errorf("case %s holds", c.Name)
				}
				if names[c.Name] || c.Fact == "" || c.Source == "" {
					t.Errorf("case %s: not unique, or without fact or source", c.Name)
				}
				names[c.Name] = true
			}
		})
	}
}

// Outside of a test, Check returns the differences of a server. Without a project,
// some cases cannot be checked.
func ExampleCase_Check() {
	srv := fakegcs.NewServer(nil, nil)
	defer srv.Close()
	if err := srv.CreateBucket(fakegcs.Bucket{Name: "demo"}); err != nil {
		panic(err)
	}
	target := fakegcstest.Target{URL: srv.URL, Bucket: "demo"}
	differences := 0
	for _, c := range fakegcstest.Cases() {
		switch err := c.Check(context.Background(), target); {
		case errors.Is(err, fakegcstest.ErrNotChecked): // not checked
		case err != nil:
			differences++
			fmt.Printf("%s: %s\n%v\n", c.Name, c.Fact, err)
		}
	}
	fmt.Println(differences, "differences")
	// Output: 0 differences
}

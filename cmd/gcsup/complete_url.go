package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"gcsup/internal/bucket"
	"gcsup/session"
)

// completionTimeout is how long a shell waits for buckets and objects.
const completionTimeout = 3 * time.Second

// urlPrefix begins the URLs of buckets and objects.
const urlPrefix = "gs://"

// completePaths returns the completion of arguments that are files or URLs. userProject points to
// the project that is billed.
func (f *targetFlags) completePaths(userProject *string) cobra.CompletionFunc {
	urls := f.completeURLs(userProject)
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if _, _, ok := splitCommand(append(args, prefix), cmd.ArgsLenAtDash()); ok {
			return nil, cobra.ShellCompDirectiveDefault // a command and its arguments
		}
		if isURL := len(prefix) >= len("gs:") && (strings.HasPrefix(prefix, urlPrefix) || strings.HasPrefix(urlPrefix, prefix)); isURL {
			return urls(cmd, args, prefix)
		}
		if files, err := filepath.Glob(prefix + "*"); prefix != "" && strings.HasPrefix(urlPrefix, prefix) && err == nil && len(files) == 0 {
			return []cobra.Completion{urlPrefix}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}

// completeURLs returns the completion of arguments that are URLs. A failure offers nothing, because
// a message would disturb the line that the user types.
func (f *targetFlags) completeURLs(userProject *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const only = cobra.ShellCompDirectiveNoFileComp
		rest, isURL := strings.CutPrefix(prefix, urlPrefix)
		if !isURL && !strings.HasPrefix(urlPrefix, prefix) {
			return nil, only
		}
		if !isURL {
			rest = ""
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		if _, err := setDefaults(cmd); err != nil || f.emulatorMissing() {
			return nil, only
		}
		c, err := f.open(ctx, false)
		if err != nil {
			return nil, only
		}
		defer c.close()
		if c.connect(ctx) != nil {
			return nil, only
		}
		requests, err := session.NewClient(c.client.HTTP(), c.client.Endpoint())
		if err != nil {
			return nil, only
		}
		if name, object, ok := strings.Cut(rest, "/"); ok {
			return offered(objectURLs(ctx, requests, name, object, *userProject))
		}
		project := f.project()
		if project == "" && c.client.Anonymous() != "" {
			project = "emulator" // which has buckets, and no projects
		}
		return offered(bucketURLs(ctx, requests, project, rest))
	}
}

// offered returns the completions for URLs. After one that can be continued, there is no space.
func offered(urls []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var all []cobra.Completion
	for _, u := range urls {
		if strings.ContainsFunc(u, unicode.IsControl) {
			continue // it cannot be typed
		}
		if strings.HasSuffix(u, "/") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		all = append(all, u)
	}
	return all, directive
}

// bucketURLs returns the URLs of the buckets of a project whose names begin with prefix.
func bucketURLs(ctx context.Context, client *session.Client, project, prefix string) (urls []string) {
	if project == "" {
		return nil
	}
	names, _ := bucket.Names(ctx, client, project, prefix)
	for _, name := range names {
		urls = append(urls, urlPrefix+name+"/")
	}
	return urls
}

// objectURLs returns the URLs of the objects whose names begin with prefix, up to the next slash.
func objectURLs(ctx context.Context, client *session.Client, name, prefix, userProject string) (urls []string) {
	page, _ := bucket.List(ctx, client, bucket.Query{Bucket: name, Prefix: prefix, Delimiter: "/", UserProject: userProject})
	if page == nil {
		return nil
	}
	for _, p := range page.Prefixes {
		urls = append(urls, urlPrefix+name+"/"+p)
	}
	for _, o := range page.Objects {
		urls = append(urls, urlPrefix+name+"/"+o.Name)
	}
	return urls
}

// emulatorMissing reports whether --emulator has kept nothing yet. Its first use creates a directory.
func (f *targetFlags) emulatorMissing() bool {
	if !f.emulator.on {
		return false
	}
	dir, err := f.emulatorDir()
	if err == nil {
		_, err = os.Stat(dir)
	}
	return err != nil
}

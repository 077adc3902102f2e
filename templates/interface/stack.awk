# The stack of every function and of its deepest chain of calls, from gcc -fcallgraph-info=su: awk -f stack.awk FILE.ci
#
# A call through a pointer counts as the deepest function of the file that is not called by name, such as the
# right-hand side that a step evaluates. Functions of libraries are listed; their stack is not counted.
function quoted(key, line,   text) {
  text = substr(line, index(line, key ": \"") + length(key) + 3)
  return substr(text, 1, index(text, "\"") - 1)
}
function short(title) { sub(/^.*:/, "", title); return title }
# The bytes of the deepest chain of calls from a function; deepest[f] is the function that it calls there.
function path(f,   n, k, g, most, bytes) {
  if (f in depth) return depth[f]
  if (f in open) { print "recursion: " short(f); exit status = 1 }
  open[f] = 1
  most = 0
  n = split(calls[f], list, "\n")
  for (k = 1; k <= n; k++) names[f, k] = list[k]
  for (k = 1; k <= n; k++) {
    g = names[f, k]
    bytes = g == "__indirect_call" ? pointed : path(g)
    if (bytes > most) { most = bytes; deepest[f] = g == "__indirect_call" ? target : g }
  }
  delete open[f]
  return depth[f] = own[f] + most
}
/^node:/ {
  title = quoted("title", $0)
  label = quoted("label", $0)
  if (match(label, /[0-9]+ bytes \([a-z,]+\)/)) {
    text = substr(label, RSTART, RLENGTH)
    own[title] = text + 0
    order[++count] = title
    if (text !~ /\(static\)/) { print short(title) ": " text; status = 1 }
  } else if (title != "__indirect_call") {
    library = library " " title
  }
}
/^edge:/ {
  from = quoted("sourcename", $0)
  to = quoted("targetname", $0)
  called[to] = 1
  calls[from] = calls[from] (calls[from] == "" ? "" : "\n") to
  if (to == "__indirect_call") indirect[from] = 1
}
END {
  for (k = 1; k <= count; k++) {
    f = order[k]
    if (f in called || f in indirect || f !~ /:/) continue
    if (path(f) > pointed) { pointed = path(f); target = f }
  }
  printf "%8s %8s  %s\n", "own", "chain", "function (bytes of stack)"
  for (k = 1; k <= count; k++) {
    f = order[k]
    if (path(f) > worst) { worst = path(f); first = f }
    printf "%8d %8d  %s\n", own[f], path(f), short(f) | "sort -k2,2nr -k3"
  }
  close("sort -k2,2nr -k3")
  chain = short(first)
  for (f = first; f in deepest; f = deepest[f]) chain = chain " > " short(deepest[f])
  print "deepest chain: " worst " bytes: " chain
  print "library functions, not counted:" library
  exit status
}

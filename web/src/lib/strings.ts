/** Every word the page says. Text from nodes is never among them and is only ever rendered as text. */
import type { Grouping, Sorting } from "./route.svelte";
import type { ComplaintReason } from "./search";
import type { Trouble } from "./stream";
import type { DeviceState, NodeState, NodeWay } from "./types";

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

export const strings = {
  product: "gpuherd",
  unknownValue: "–",
  unknownUser: "unknown user",
  unknownName: "unnamed",

  title: {
    live: (free: number): string => `${free} free`,
    notLive: "not live",
    paused: "paused",
  },

  deviceState: {
    free: "free",
    busy: "busy",
    held: "held idle",
    booked: "booked",
    fault: "fault",
    stale: "stale",
    offline: "offline",
    unknown: "unknown",
  } satisfies Record<DeviceState, string>,

  nodeState: {
    live: "live",
    stale: "stale",
    offline: "offline",
    never: "never reported",
  } satisfies Record<NodeState, string>,

  way: {
    push: "its agent, which reports",
    pull: "its agent, which is asked",
    ssh: "SSH",
    file: "dropped files",
    gpustat: "gpustat (old protocol)",
    node_info: "node_info (old protocol)",
    xmlrpc: "XML-RPC (old protocol)",
    http_files: "files over HTTP (old protocol)",
  } satisfies Record<NodeWay, string>,

  notices: {
    label: "Notices",
    more: (count: number): string => plural(count, "more notice", "more notices"),
  },

  connection: {
    label: "Connection to the hub",
    connecting: "connecting",
    live: "live",
    every: (interval: string): string => `every ${interval}`,
    paused: "paused",
    reconnecting: "reconnecting",
    notLive: "not live",
  },

  shell: {
    skip: "Skip to the content",
    navigation: "Pages",
    pages: { herd: "Herd", users: "Users", timeline: "Bookings", usage: "Usage" },
    controls: "Page controls",
    pause: "Pause",
    resume: "Resume",
    refresh: "Refresh now",
    help: "Keyboard shortcuts",
    close: "Close",
    theme: "Theme",
    themes: { system: "System", light: "Light", dark: "Dark" },
    themeButton: (current: string, next: string): string => `Theme: ${current}. Switch to ${next}`,
    updates: "Updates",
    updatesLive: "Live",
    lastUpdate: "Last update",
    zone: "Time zone",
    footer: {
      update: (when: string): string => `Last update ${when}`,
      zone: (zone: string): string => `Times in ${zone}`,
      api: "API",
      names: "Everyone in this network sees names, without a login",
    },
  },

  person: {
    logIn: "Log in",
    you: "Account menu",
    menu: (name: string): string => `${name}: account and log out`,
    ended: "You are logged out.",
    endedHint: "Your login has ended; what is on this page stays.",
    nobody:
      "Nobody has an account yet: to make the first, open the link that gpuherd printed at its start, or run",
    setup: "gpuherd hub setup-link",
    missing: "Records are missing: restore a backup, or start afresh with",
    afresh: "gpuherd hub start-afresh",
  },

  banner: {
    title: (age: string): string => `Not live: this is how things were ${age} ago.`,
    paused: (when: string): string => `Paused: this is how things were at ${when}.`,
    trouble: {
      closed: "The connection to the hub is lost; trying again.",
      refused: "The hub refuses the connection for now; trying again.",
      silent: "The hub does not respond; waiting for it.",
      gap: "A message was missed; reloading everything.",
      unreadable: "The hub sent something this page cannot read. Reload the page if this stays.",
      slept: "This device slept or its clock was set; reloading everything.",
    } satisfies Record<Trouble, string>,
  },

  start: {
    connecting: "Connecting to the hub …",
    notConnected: "Not connected to the hub",
    notConnectedHint: "Nothing was received yet. If this stays:",
    remedies: [
      "See whether the hub is running, and what it says of itself:",
      "If a proxy stands in front of it, let it pass event streams on unbuffered.",
      "This page tries again by itself; you need not reload it.",
    ],
    notFound: "There is no such page",
  },

  commands: {
    doctor: "gpuherd doctor",
    doctorOf: "gpuherd doctor HOST",
    demo: "make demo",
  },

  summary: {
    devices: (count: number): string => plural(count, "GPU", "GPUs"),
    nodes: (count: number): string => plural(count, "node", "nodes"),
  },

  nodes: {
    heading: "Nodes",
    expandAll: "Expand all",
    collapseAll: "Collapse all",
    toggle: (name: string): string => `Details of ${name}`,
    wasLive: "was live",
    free: (count: number): string => `${count} free`,
    noGpu: "no GPU",
    lastContact: (age: string): string => `${age} ago`,
    noContact: "no contact yet",
    contactTitle: (when: string): string => `Last report: ${when}`,
    cpu: "CPU",
    memory: "RAM",
    disk: "Disk",
    users: "Users",
    moreUsers: (count: number): string => `+${count}`,
    moreProblems: (count: number): string => `+${count} more`,
    devicesOf: (name: string): string => `GPUs of ${name}`,
  },

  facts: {
    label: "About this node",
    driver: "Driver",
    cuda: "CUDA",
    os: "OS",
    kernel: "Kernel",
    cpu: "CPU",
    threads: (count: number): string => plural(count, "thread", "threads"),
    memory: "Memory",
    swap: "Swap",
    load: "Load",
    uptime: "Up",
    addresses: "Addresses",
    agent: "Agent",
    way: "Reached by",
    interval: "Reports every",
    skew: "Clock",
    skewAhead: (by: string): string => `${by} ahead of the hub`,
    skewBehind: (by: string): string => `${by} behind the hub`,
    skewNone: "in step with the hub",
    calledItself: "Calls itself",
    of: (used: string, total: string): string => `${used} of ${total}`,
  },

  device: {
    gpu: "GPU",
    state: "State",
    utilization: "Utilisation",
    memory: "Memory",
    temperature: "Temp.",
    temperatureLong: "Temperature",
    power: "Power",
    since: (age: string): string => `for ${age}`,
    sinceTitle: (when: string): string => `Since ${when}`,
    slice: "slice",
    partitioned: "split into slices",
    hostMemory: "shared with the host",
    label: (label: string, name: string): string => `GPU ${label}, ${name}`,
    bar: {
      utilization: (label: string): string => `Utilisation of GPU ${label}`,
      memory: (label: string): string => `Memory of GPU ${label}`,
    },
    unknownBar: "unknown",
    throttled: "throttled",
    ecc: (count: number): string => plural(count, "uncorrected ECC error", "uncorrected ECC errors"),
    tile: (label: string, state: string): string => `GPU ${label}: ${state}`,
  },

  throttle: {
    8: "hardware slowdown",
    32: "thermal",
    64: "hardware thermal",
    128: "power brake",
  } as Record<number, string>,

  process: {
    count: (processes: number): string => plural(processes, "process", "processes"),
    tableOf: (label: string): string => `Processes on GPU ${label}`,
    user: "User",
    pid: "PID",
    memory: "GPU memory",
    sm: "SM",
    cpu: "CPU",
    ram: "RAM",
    running: "Running",
    command: "Command",
    cores: (value: string): string => `${value} cores`,
    graphics: "graphics",
    gone: "dead, memory still held",
    goneTitle: "The driver still lists this process, the operating system does not",
    ramTitle: "Main memory of the host",
    container: (name: string): string => `container ${name}`,
    job: (name: string): string => `job ${name}`,
    unknownCommand: "command unknown",
  },

  booking: {
    current: (time: string): string => time,
    past: (time: string): string => `${time} ago`,
    next: (time: string): string => `in ${time}`,
    violation: "used by someone else",
    unused: "not used",
    book: "Book",
    label: "Bookings",
  },

  problem: {
    heading: "Problems",
    since: (age: string): string => `for ${age}`,
    noDevices: "No GPU on this node",
    noSlices: "The GPUs of this node are split, and there is no slice yet",
    neverHint: "This node has joined but never sent a report. Is its agent running?",
    nothingYet: "Nothing is known of this node yet",
    neverReached: (way: string): string =>
      `The hub has not had an answer from it by ${way}. What it met with stands above.`,
    noDevicesWhy:
      "Its processors and disks are watched all the same. To learn why it has none, run on the hub",
    noDevicesHint: "To see gpuherd with simulated cards, run",
  },

  pages: {
    outdated: "This part of the page could not be loaded; the hub may have been updated.",
    reload: "Reload the page",
  },

  herd: {
    freeNow: "Free now",
    freeThen: (age: string): string => `Free ${age} ago`,
    heldIdle: "Held idle",
    nextFree: "Next free",
    freeNone: "No GPU is known to be free.",
    most: (count: number): string => `${count} on`,
    modelTitle: (name: string): string => `Show free ${name}`,
    modelMix: (parts: string): string => `States: ${parts}`,
    together: (gpus: number, nodes: number): string => `${gpus} in one node: ${nodes}`,
    away: (count: number): string => `${count} not reporting`,
    awayTitle: "GPUs of which nothing is known now; they are not counted as free",
    togetherTitle: (gpus: number): string => `Nodes with ${gpus} or more free GPUs of one model`,
    moreModels: (count: number): string => `${count} more`,
    fewer: "Fewer",
    heldNone: "No GPU is known to be held idle.",
    holder: (devices: number): string => plural(devices, "GPU", "GPUs"),
    heldFor: (age: string): string => `for ${age}`,
    holderTitle: (user: string, when: string): string => `Idle GPUs of ${user}, the first since ${when}`,
    unknownNext: "Unknown",
    unknownNextWhy: "No running booking or job limit says when, so nothing can be promised.",
    nextWhy: (node: string, holder: string, at: string): string =>
      `${node}: booking of ${holder} ends${at && ` at ${at}`}`,

    overTime: "Over time",
    chips: "Filters",
    states: "States",
    memories: "Memory",
    models: "GPU types",
    least: (gigabytes: number): string => `≥ ${gigabytes} GB`,
    mine: "Mine",
    mineOf: (user: string): string => `Mine (${user})`,
    mineField: "Your user name",
    mineSave: "Show mine",
    mineChange: "Change the user name",
    trouble: "Problems",
    troubleTitle: "Nodes and GPUs with something wrong",

    search: {
      label: "Search the herd",
      placeholder: "Search hosts, users, GPUs, states",
      clear: "Clear the search",
      tryThese: "Try",
      examples: [
        { query: "free mem>=80G", means: "free GPUs with 80 GB" },
        { query: "free>=4", means: "nodes with four free GPUs" },
        { query: "held idle>30m", means: "held idle for half an hour" },
        { query: "busy util<10", means: "busy, but hardly" },
        { query: "user:NAME", means: "GPUs of a user" },
        { query: "host:h100-*", means: "hosts by name" },
        { query: "-offline", means: "all but these" },
      ],
      complaint: {
        size: "needs a size, such as mem>40G",
        time: "needs a time, such as idle>30m",
        percent: "needs a percentage, such as util<10",
        number: "needs a number, such as temp>80",
        field: "is not known here; try user:, host:, type:, mem>, util<, idle>",
        name: "needs a name, such as user:anna",
      } satisfies Record<ComplaintReason, string>,
      leftOut: (source: string, why: string): string => `“${source}” ${why}. It is left out for now.`,
    },

    found: (devices: number, total: number, nodes: string): string =>
      `${devices} of ${total} GPUs on ${nodes}`,
    nothing: "Nothing matches.",
    nothingHint: "Take a term out of the search, or",
    clearFilter: "show everything",
    group: "Group",
    groups: { node: "Node", type: "Type", user: "User" } satisfies Record<Grouping, string>,
    sort: "Sort",
    sorts: { name: "Name", free: "Most free", busy: "Most busy", memory: "Most memory" } satisfies Record<
      Sorting,
      string
    >,
    groupFree: (free: number, devices: number): string => `${free} of ${devices} free`,
    groupDevices: (devices: number): string => plural(devices, "GPU", "GPUs"),
    nobody: "Nobody",
    unknownOwner: "Unknown owner",
    noDevice: "No GPU",

    map: {
      label: (free: number, total: number): string =>
        `Map of all GPUs by node: ${free} of ${total} free. Arrow keys move, Enter opens. The list below says the same in words.`,
      cell: (node: string, gpu: string, model: string): string => `${node}, GPU ${gpu}, ${model}`,
      bare: "no GPU to be seen",
      utilization: "Utilisation",
      memory: "Memory",
      users: "Users",
      nobody: "nobody",
      excluded: "not in the search",
    },

    node: {
      page: (name: string): string => `Page of ${name}`,
      driver: (version: string): string => `driver ${version}`,
      addresses: "Addresses",
      hidden: (count: number): string => `${plural(count, "GPU", "GPUs")} not in the search`,
      cpuTitle: (load: string, threads: string): string => `Load ${load} on ${threads}`,
    },

    device: {
      page: (label: string): string => `Page of GPU ${label}`,
      heldBy: "by",
      segment: (share: string, user: string): string => `${share} ${user}`,
      segmentTitle: (user: string, pid: number, memory: string, share: string): string =>
        `${user} · PID ${pid} · ${memory} (${share})`,
      others: (count: number): string => plural(count, "smaller process", "smaller processes"),
      othersTitle: (processes: string, memory: string, share: string): string =>
        `${processes} · ${memory} (${share})`,
      unattributed: "not told whose",
      unattributedTitle: (memory: string): string => `${memory} that no process accounts for`,
    },
  },
} as const;
